"""Checks that compare what attacks found: a weaker attack that finds what a stronger one missed tells of masking."""

from itertools import pairwise

import torch

from gammacaps.attacks.table import attack_named
from gammacaps.evaluation.checks.finding import Finding, missed, percent
from gammacaps.evaluation.checks.kinds import (
    AttackKind,
    black_box,
    by_chance,
    many_steps,
    must_grow,
    on_votes,
    one_step,
    white_box,
)
from gammacaps.evaluation.measure import Measured
from gammacaps.radius import radius


def compare(outcomes: list[Measured], curve: list[Measured]) -> list[Finding]:
    """All checks on the attacks of one evaluation."""
    checks = [
        _beats("fgsm-beats-pgd", outcomes, one_step, many_steps, "one step (FGSM)", "many steps (PGD)"),
        _beats("noise-beats-gradient", outcomes, by_chance, white_box, "random noise", "gradients"),
        _beats(
            "black-box-beats-white-box",
            outcomes,
            black_box,
            white_box,
            "attacks that see scores alone or another network",
            "attacks that see the gradient",
        ),
        _beats(
            "surrogate-beats-white-box",
            outcomes,
            on_votes,
            white_box,
            "the network with its routing replaced by the mean of the votes",
            "the network's own gradient",
        ),
        _falls([*outcomes, *curve]),
        _reach(outcomes),
        _inside(outcomes),
    ]
    return [check for check in checks if check is not None]


def _beats(
    name: str,
    outcomes: list[Measured],
    weak: AttackKind,
    strong: AttackKind,
    weak_words: str,
    strong_words: str,
) -> Finding | None:
    """Images that stand under every strong attack but fall to a weak one, at the radius where they are most."""
    most, where, compared = -1, 0.0, 0
    for eps in {one.spec.eps for one in outcomes}:
        weaker = [m for m in outcomes if m.spec.eps == eps and weak(attack_named(m.spec.attack))]
        stronger = [m for m in outcomes if m.spec.eps == eps and strong(attack_named(m.spec.attack))]
        if not weaker or not stronger:
            continue
        # AutoAttack's square attack sees only what its parts before it left, so it counts as it is.
        both = torch.stack([m.done for m in (*weaker, *stronger)]).all(0)
        only = torch.stack([m.broken for m in weaker]).any(0) & ~torch.stack([m.broken for m in stronger]).any(0)
        count = int((only & both).sum())
        if both.any() and count > most:
            most, where, compared = count, eps, int(both.sum())
    if most < 0:
        return None
    number = most / compared
    verdict = missed(most, compared)
    words = f"{percent(number)} of the images (eps {where:g}) fall to {weak_words} but not to {strong_words}"
    end = ", as it should be" if verdict == "pass" else ": gradients may be masked, and the true accuracy lower"
    return Finding(name, verdict, number, f"{words}{end}.")


def _falls(outcomes: list[Measured]) -> Finding | None:
    """What a small ball holds, a larger one holds too: no image may fall near and stand far; some must fall more."""
    pairs = []
    for attack in dict.fromkeys(m.spec.attack for m in outcomes if must_grow(attack_named(m.spec.attack))):
        curve = sorted((m for m in outcomes if m.spec.attack == attack and m.spec.eps > 0), key=lambda m: m.spec.eps)
        for near, far in pairwise(curve):
            both = near.done & far.done
            if both.any():
                back = int((near.broken & ~far.broken & both).sum())
                flat = far.stood > 0 and int((near.broken & both).sum()) == int((far.broken & both).sum())
                pairs.append((back, int(both.sum()), attack, near.spec.eps, far.spec.eps, flat))
    if not pairs:
        return None
    back, images, attack, near_eps, far_eps, _ = max(pairs)
    verdict = missed(back, images)
    if verdict != "pass":
        words = (
            f"Under {attack} {back} of {images} images that fall at eps {radius(near_eps)} stand at {radius(far_eps)}"
        )
        return Finding("falls-with-eps", verdict, back / images, f"{words}: that attack fails at the larger radius.")
    # Noise may be harmless at any radius, and what never fell at all is judged by the bound at 0.5.
    stuck = [p for p in pairs if p[5] and not by_chance(attack_named(p[2])) and p[4] >= 2 * p[3]]
    if stuck:
        _, _, attack, near_eps, far_eps, _ = stuck[0]
        words = f"Under {attack} accuracy is the same at eps {radius(near_eps)} and {radius(far_eps)}"
        return Finding("falls-with-eps", "warn", 0.0, f"{words}: the attack may be stuck.")
    return Finding("falls-with-eps", "pass", back / images, "Accuracy does not rise as the radius grows.")


def _reach(outcomes: list[Measured]) -> Finding | None:
    """Steps times step must cross the ball; FGSM's one step always does."""
    stepping = [m.spec for m in outcomes if m.spec.steps and m.spec.step is not None and m.spec.eps > 0 and m.stood]
    if not stepping:
        return None
    reaches = [(spec.steps * spec.step / spec.eps, spec) for spec in stepping if spec.steps and spec.step is not None]
    share, spec = min(reaches, key=lambda pair: pair[0])
    if share >= 1 - 1e-9:
        return Finding("steps-reach-eps", "pass", share, "The steps of every attack can cross its ball.")
    crossed = any(r >= 1 - 1e-9 and s.eps == spec.eps and not one_step(attack_named(s.attack)) for r, s in reaches)
    words = f"{spec.steps} steps of {spec.step:g} reach {share * spec.eps:g}, less than eps {spec.eps:g}"
    if crossed:
        return Finding("steps-reach-eps", "warn", share, f"{words}: read {spec.attack} there beside the worst case.")
    return Finding("steps-reach-eps", "fail", share, f"{words}: the true accuracy may be lower (raise --attack-step).")


def _inside(outcomes: list[Measured]) -> Finding | None:
    """Attacked images must lie in the ball and in [0, 1]; a rounding of float32, larger of a sum, is let pass."""
    if not outcomes:
        return None
    worst = max(outcomes, key=lambda m: m.outside)
    if worst.outside <= (1e-6 if worst.spec.norm == "linf" else 1e-5 * max(1.0, worst.spec.eps)):
        return Finding("inside-the-ball", "pass", worst.outside, "All attacked images lie within eps and [0, 1].")
    words = f"{worst.spec.attack} left its ball or [0, 1] by {worst.outside:.2g}: its figure is too low"
    return Finding("inside-the-ball", "fail", worst.outside, f"{words}.")
