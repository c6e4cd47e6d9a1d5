"""The table of attacks, cheapest first: what an evaluation can run, in this order. A new attack is an entry here.

Suites, titles, the checks' kinds and the explorer's menu all follow from it. A user adds their own by `add_attack`.
"""

import dataclasses
import re
from collections.abc import Iterable
from typing import Any, get_args

import torch
from torch import Tensor

from gammacaps.attacks.attack import Attack, Attempt, Live, Numbers, PartedAttack, Sees, Victim
from gammacaps.attacks.auto import auto_attack, why_not_auto
from gammacaps.attacks.gradient import Classifier, climbed, default_step, fgsm
from gammacaps.attacks.noise import grey, noise
from gammacaps.attacks.vote import vote_surrogate
from gammacaps.errors import InputError, check_choice, check_name_is_free
from gammacaps.imports import PLUGIN_HINT, source_print

_attacks: dict[str, Attack] = {}
_SUITES = ("paper", "quick", "standard", "strong", "autoattack")  # in the order in which they are named to users
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")  # fit for a file's name too


def add_attack(attack: Attack) -> None:
    """Adds an attack after those that are there: it can then be evaluated, shown and played with like any other.

    An attack of one's own may be added again under its name, and is then replaced; those of gammacaps stay.
    """
    if not isinstance(attack, Attack):
        raise InputError("An attack is an Attack(...), or made of a function by Attack.from_function(...).")
    if not _NAME.fullmatch(attack.name):
        raise InputError(
            f"An attack's name has lower-case letters, digits and '-', as in 'my-attack', not {attack.name!r}."
        )
    if attack.sees not in get_args(Sees):
        raise InputError(f"An attack's `sees` must be one of {', '.join(get_args(Sees))}, not {attack.sees!r}.")
    check_name_is_free("an attack", attack.name, (ours.name for ours in _OURS))
    wholes = {each.part_of.name for each in _attacks.values() if each.part_of is not None}
    if attack.name in {*suites(), *wholes}:
        raise InputError(f"'{attack.name}' stands for several attacks already: give yours another name.")
    for suite in attack.suites:
        if suite in {*_attacks, attack.name, *wholes}:
            raise InputError(f"'{suite}' is the name of an attack, and no suite: give the suite of yours another name.")
    _attacks[attack.name] = dataclasses.replace(attack, code=attack.code or source_print(attack.run))


def attack_named(name: str) -> Attack:
    """The attack of that name; an unknown name is an error that lists those there are."""
    check_choice("attack", name, _attacks, also=PLUGIN_HINT)
    return _attacks[name]


def all_attacks() -> tuple[Attack, ...]:
    """In the order in which they are run."""
    return tuple(_attacks.values())


def attack_names() -> tuple[str, ...]:
    """Those that can be asked for by their names, in the order in which they are run."""
    return tuple(attack.name for attack in all_attacks() if attack.by_name)


def attacks_for(names: Iterable[str]) -> tuple[Attack, ...]:
    """What names of attacks and of suites ask for, each attack once, in the order in which they are run."""
    asked = set(names)
    return tuple(
        attack for attack in all_attacks() if asked & set(attack.suites) or (attack.by_name and attack.name in asked)
    )


def suites() -> dict[str, tuple[str, ...]]:
    """The attacks of each suite that can also be asked for alone, in the order in which they are run."""
    names = dict.fromkeys((*_SUITES, *(suite for attack in all_attacks() for suite in attack.suites)))
    return {
        name: tuple(attack.name for attack in all_attacks() if name in attack.suites and attack.by_name)
        for name in names
    }


def title_of(name: str) -> str:
    """What tables call an attack; one that was measured with a table that had more than this keeps its bare name."""
    for attack in all_attacks():
        if attack.name == name:
            return attack.title
        if attack.part_of is not None and attack.part_of.name == name:
            return attack.part_of.title
    return name


def parts_of(whole: PartedAttack) -> tuple[str, ...]:
    """The parts of an attack, in their order."""
    return tuple(attack.name for attack in all_attacks() if attack.part_of == whole)


def _run_noise(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
    assert attempt.numbers.steps is not None
    draws, generator = attempt.numbers.steps, attempt.generator
    return noise(model, images, labels, eps=attempt.eps, draws=draws, generator=generator, norm=attempt.norm)


def _run_fgsm(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
    assert attempt.numbers.loss is not None
    loss, norm = attempt.numbers.loss, attempt.norm
    return fgsm(model, images, labels, eps=attempt.eps, loss=loss, targets=attempt.targets, norm=norm)


def _run_pgd(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
    return climbed(model, images, labels, until_broken=not attempt.to_the_end, **_pgd_options(attempt))


def _run_vote(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
    return _from_surrogate(vote_surrogate(model), model, images, labels, attempt)


def _run_transfer(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
    if attempt.other is None:
        raise InputError("The attack transfer needs another network for the same task: give it as `other`.")
    return _from_surrogate(attempt.other, model, images, labels, attempt)


def _from_surrogate(
    surrogate: Classifier, model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt
) -> Tensor:
    """PGD on another network, each start tested on the real one; images that none of them breaks stay as they are."""
    options = _pgd_options(attempt)
    if attempt.to_the_end:
        return climbed(surrogate, images, labels, **options)
    result = images.clone()
    for _ in range(options.pop("restarts")):
        attacked = climbed(surrogate, images, labels, **options)
        with torch.no_grad():
            broken = model(attacked).argmax(dim=1) != labels
        result[broken] = attacked[broken]
    return result


def _pgd_options(attempt: Attempt) -> dict[str, Any]:
    given = attempt.numbers
    assert given.steps is not None
    assert given.step is not None
    assert given.loss is not None
    numbers = {"step": given.step, "steps": given.steps, "restarts": given.restarts, "loss": given.loss}
    where = {"eps": attempt.eps, "norm": attempt.norm}
    return {**where, **numbers, "targets": attempt.targets, "generator": attempt.generator}


def _chosen(eps: float, chosen: Numbers, victim: Victim) -> Numbers:
    """What the user chose; a step that follows the radius where they chose none."""
    if chosen.step is not None or chosen.steps is None:
        return chosen
    return dataclasses.replace(chosen, step=default_step(eps, chosen.steps))


def _long(loss: str, eps: float) -> Numbers:
    """What the attacks that the paper does not have take."""
    return Numbers(steps=100, step=eps / 10, restarts=2, loss=loss)


def _short(eps: float) -> Numbers:
    """What a page or a curve takes."""
    return Numbers(steps=40, step=eps / 10, loss="margin")


def _without_votes(victim: Victim) -> str | None:
    if not victim.capsules:
        return "the network has no capsules, and so no votes"
    return None if victim.mean_votes else "the network's class does not define mean_votes()"


def _auto(name: str, part: str, title: str, sees: Sees, climbs: Any = None) -> Attack:
    """A part of AutoAttack's standard version."""

    def run(model: Classifier, images: Tensor, labels: Tensor, attempt: Attempt) -> Tensor:
        options: dict[str, Any] = {"eps": attempt.eps, "part": part, "seed": attempt.seed, "norm": attempt.norm}
        if attempt.numbers.steps is not None:
            options["queries"] = attempt.numbers.steps
        return auto_attack(model, images, labels, **options)

    return Attack(
        name=name,
        title=title,
        sees=sees,
        run=run,
        why_not=lambda victim: why_not_auto(part, victim.classes),
        climbs=climbs,
        suites=("strong", "autoattack"),
        norms=_NORMS,
        part_of=AUTOATTACK,
        in_curve=False,
    )


AUTOATTACK = PartedAttack("autoattack", "AutoAttack")
_EVERYWHERE = ("paper", "quick", "standard", "strong")
_NORMS = ("linf", "l2", "l1")

_OURS = (
    Attack(
        name="noise",
        title="random noise",
        sees="chance",
        norms=_NORMS,
        run=_run_noise,
        numbers=lambda eps, chosen, victim: Numbers(steps=20),
        suites=("quick", "standard", "strong"),
        live=Live("random noise", lambda eps: Numbers(steps=20), place=3, passes=21),  # one before the draws
    ),
    Attack(
        name="fgsm",
        title="FGSM",
        sees="gradients",
        norms=_NORMS,
        run=_run_fgsm,
        numbers=lambda eps, chosen, victim: Numbers(steps=1, step=eps, loss=chosen.loss),
        suites=_EVERYWHERE,
        climbs="one step",
        random=False,
        live=Live(
            "FGSM, one step", lambda eps: Numbers(steps=1, step=eps, loss="margin"), place=1, passes=1, aims=True
        ),
    ),
    Attack(
        name="pgd",
        title="PGD",
        sees="gradients",
        norms=_NORMS,
        run=_run_pgd,
        numbers=_chosen,
        suites=_EVERYWHERE,
        climbs="many steps",
        titled_by_steps=True,
        live=Live("PGD, 40 steps", _short, place=0, passes=40, aims=True),
    ),
    Attack(
        name="pgd-ce-40",
        title="PGD on cross-entropy",
        sees="gradients",
        run=_run_pgd,
        numbers=lambda eps, chosen, victim: dataclasses.replace(
            _short(eps), loss="ce-log" if victim.capsules else "ce"
        ),
        suites=("quick",),
        climbs="many steps",
        by_name=False,
        in_curve=False,
    ),
    Attack(
        name="pgd-margin",
        title="PGD on margins",
        sees="gradients",
        norms=_NORMS,
        run=_run_pgd,
        numbers=lambda eps, chosen, victim: _long("margin", eps),
        suites=("standard", "strong"),
        climbs="many steps",
        in_curve=False,
    ),
    Attack(
        name="pgd-ce",
        title="PGD on cross-entropy",
        sees="gradients",
        norms=_NORMS,
        run=_run_pgd,
        numbers=lambda eps, chosen, victim: _long("ce-log" if victim.capsules else "ce", eps),
        suites=("standard", "strong"),
        climbs="many steps",
        in_curve=False,
    ),
    Attack(
        name="pgd-dlr",
        title="PGD on DLR",
        sees="gradients",
        norms=_NORMS,
        run=_run_pgd,
        numbers=lambda eps, chosen, victim: _long("dlr", eps),
        why_not=lambda victim: (
            None if victim.classes > 2 else f"its loss needs 3 classes and the network has {victim.classes}"
        ),
        suites=("strong",),
        climbs="many steps",
        in_curve=False,
    ),
    Attack(
        name="vote",
        title="vote attack",
        sees="votes",
        norms=_NORMS,
        run=_run_vote,
        numbers=lambda eps, chosen, victim: _long("margin", eps),
        why_not=_without_votes,
        suites=("standard", "strong"),
        live=Live("the vote attack", _short, place=2, passes=40, aims=True),
        in_curve=False,
    ),
    Attack(
        name="transfer",
        title="transfer from a CNN",
        sees="another network",
        norms=_NORMS,
        run=_run_transfer,
        numbers=lambda eps, chosen, victim: _long("margin", eps),
        why_not=lambda victim: None if victim.other is not None else "there is no other network for this task",
        suites=("strong",),
        in_curve=False,
    ),
    dataclasses.replace(
        _auto("square", "square", "Square (black box)", "scores"),
        numbers=lambda eps, chosen, victim: Numbers(steps=500),
        suites=("strong",),
        part_of=None,
    ),
    _auto("apgd-ce", "apgd-ce", "AutoAttack's APGD-CE", "gradients", "many steps"),
    _auto("apgd-t", "apgd-t", "AutoAttack's APGD-T", "gradients", "many steps"),
    _auto("fab-t", "fab-t", "AutoAttack's FAB-T", "gradients"),
    _auto("auto-square", "square", "AutoAttack's Square", "scores"),
    Attack(
        name="grey",
        title="grey image",
        sees="nothing",
        run=lambda model, images, labels, attempt: grey(images, attempt.eps),
        suites=("standard", "strong"),
        random=False,
        by_name=False,
        least_eps=0.5,
        in_curve=False,
    ),
    Attack(
        name="sweep",  # of the curve over the radius
        title="PGD of the curve",
        sees="gradients",
        norms=_NORMS,
        run=_run_pgd,
        numbers=lambda eps, chosen, victim: _short(eps),
        climbs="many steps",
        by_name=False,
    ),
)
_attacks.update({attack.name: attack for attack in _OURS})
