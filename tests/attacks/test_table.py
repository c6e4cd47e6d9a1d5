"""The table of attacks: what follows from it, and what it refuses."""

import dataclasses

import pytest
import torch

from gammacaps.attacks import Attack, add_attack, attack_named, attack_names, suites, table
from gammacaps.attacks.attack import Numbers, Victim
from gammacaps.attacks.auto import PARTS
from gammacaps.errors import InputError
from gammacaps.evaluation.checks import kinds
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.specs import Spec, attacked_images, pictured_attack, specs_for, sweep_specs
from gammacaps.evaluation.table import title

# Of the strong suite at eps 0.5 and a curve, as earlier versions named them: else all would be measured again.
KEYS = [
    "noise-eps0.5-2341076a",
    "fgsm-eps0.5-c838712f",
    "pgd-eps0.5-f51e81e6",
    "pgd-margin-eps0.5-53d6dfbe",
    "pgd-ce-eps0.5-808af3a0",
    "pgd-dlr-eps0.5-28e4e726",
    "vote-eps0.5-a58ff8f0",
    "transfer-eps0.5-13344fcd",
    "square-eps0.5-28532a94",
    "apgd-ce-eps0.5-84c08bd5",
    "apgd-t-eps0.5-d6899113",
    "fab-t-eps0.5-3e621464",
    "auto-square-eps0.5-c255af70",
    "grey-eps0.5-e8745546",
    "sweep-eps0.1-cd90bac9",
]


@pytest.fixture(autouse=True)
def _own_table(monkeypatch):
    """What a test adds is gone after it."""
    monkeypatch.setattr(table, "_attacks", dict(table._attacks))


def brighter(model, images, labels, eps, generator):
    return (images + eps).clamp(0, 1)


def linear(images):
    """Scores of 3 classes: the mean of the upper, the middle and the lower part."""
    return torch.stack([part.mean(dim=(1, 2, 3)) for part in images.tensor_split(3, dim=2)], dim=1)


def test_suites_and_their_order_are_as_they_were():
    black_and_white = ("noise", "fgsm", "pgd", "pgd-margin", "pgd-ce")
    auto = ("apgd-ce", "apgd-t", "fab-t", "auto-square")
    assert suites() == {
        "paper": ("fgsm", "pgd"),
        "quick": ("noise", "fgsm", "pgd"),
        "standard": (*black_and_white, "vote"),
        "strong": (*black_and_white, "pgd-dlr", "vote", "transfer", "square", *auto),
        "autoattack": auto,
    }
    assert attack_names() == suites()["strong"]
    assert len(auto) == len(PARTS) == len(table.parts_of(table.AUTOATTACK))


def test_the_names_of_files_of_what_was_measured_before_are_as_they_were():
    pytest.importorskip("pyautoattack")
    config = EvaluateConfig(attacks=("strong",), seed=2, sweep=(0.1,))
    specs, skipped = specs_for(Victim(10, capsules=True, other="net"), config, 0.5)
    assert skipped == []
    assert [spec.key for spec in (*specs, *sweep_specs(config))] == KEYS


def test_the_kinds_of_the_checks_follow_from_what_attacks_see():
    def kind(test):
        return [attack.name for attack in table.all_attacks() if test(attack)]

    climbing = ["pgd", "pgd-ce-40", "pgd-margin", "pgd-ce", "pgd-dlr", "apgd-ce", "apgd-t", "sweep"]
    assert kind(kinds.many_steps) == climbing
    assert set(kind(kinds.white_box)) == {*climbing, "fgsm", "fab-t"}
    assert kind(kinds.black_box) == ["transfer", "square", "auto-square"]
    assert kind(kinds.by_chance) == ["noise"]
    assert set(kind(kinds.must_grow)) == {*climbing, "noise", "square"} - {"apgd-t"}


def test_an_unknown_name_is_an_error_everywhere():
    image = torch.rand(1, 1, 6, 6)
    for call in (
        lambda: attack_named("pdg"),
        lambda: EvaluateConfig(attacks=("pdg",)),
        lambda: attacked_images(Spec("pdg", 0.1), linear, image, torch.zeros(1).long(), None, 0),
    ):
        with pytest.raises(InputError, match=r"There is no attack.* 'pdg' .did you mean 'pgd'"):
            call()
    with pytest.raises(InputError, match="no attack or suite 'grey'"):  # it comes with its suites
        EvaluateConfig(attacks=("grey",))


def test_an_attack_from_outside_joins_suites_and_runs_last():
    add_attack(Attack.from_function("brighter", "more light", brighter, sees="nothing", suites=("paper", "mine")))
    assert suites()["paper"] == ("fgsm", "pgd", "brighter")
    config = EvaluateConfig(attacks=("mine", "noise"))
    assert config.named_attacks() == ("noise", "brighter")
    spec = specs_for(Victim(3, capsules=False), config, 0.2)[0][-1]
    assert title({**spec.row(), "attack": "brighter"}) == "more light eps 0.2"
    images = torch.rand(4, 1, 6, 6)
    attacked = attacked_images(spec, linear, images, torch.zeros(4).long(), None, 0)
    assert torch.equal(attacked, (images + 0.2).clamp(0, 1))


def test_an_attack_of_one_s_own_may_be_added_again():
    for name, words in (("first", "one"), ("second", "two"), ("first", "better")):  # as a notebook's cell run twice
        add_attack(Attack.from_function(name, words, brighter, sees="nothing", suites=("mine",)))
    assert suites()["mine"] == ("first", "second")
    assert attack_named("first").title == "better"


def test_what_it_needs_is_said_where_it_is_left_out():
    def why_not(victim):
        return None if victim.classes == 2 else "it is for two classes"

    add_attack(Attack.from_function("pair", "for pairs", brighter, sees="scores", why_not=why_not))
    config = EvaluateConfig(attacks=("pair",))
    assert specs_for(Victim(3, capsules=False), config, 0.2) == ([], ["pair was left out: it is for two classes."])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "pgd"}, "'pgd' is an attack of gammacaps itself: give yours another name"),
        ({"name": "strong"}, "'strong' stands for several attacks already"),
        ({"suites": ("pgd",)}, "'pgd' is the name of an attack, and no suite"),
        ({"suites": ("standard", "mine")}, "'mine' is the name of an attack, and no suite"),
        ({"suites": ("autoattack",)}, "'autoattack' is the name of an attack, and no suite"),
        ({"name": "../mine"}, "lower-case letters"),
        ({"sees": "all"}, "An attack's `sees` must be one of gradients, votes, .*, not 'all'"),
    ],
)
def test_what_is_no_attack_is_refused(change, words):
    mine = Attack.from_function("mine", "mine", brighter, sees="nothing")
    fields = {field.name: getattr(mine, field.name) for field in dataclasses.fields(mine)}
    stand_in = object.__new__(Attack)
    for name, value in {**fields, **change}.items():
        object.__setattr__(stand_in, name, value)
    with pytest.raises(InputError, match=words):
        add_attack(stand_in)


def test_an_attack_that_gives_no_images_is_one_sentence():
    add_attack(Attack.from_function("half", "half", lambda model, images, *_: images[:1], sees="nothing"))
    images = torch.rand(4, 1, 6, 6)
    with pytest.raises(InputError, match=r"The attack half gave \(1, 1, 6, 6\) for images of shape \(4, 1, 6, 6\)"):
        attacked_images(Spec("half", 0.1), linear, images, torch.zeros(4).long(), None, 0)


def test_a_picture_has_the_numbers_of_its_figure():
    images = torch.rand(4, 1, 6, 6)
    labels = linear(images).argmax(1)
    row = {**Spec("pgd", 0.3, 2, 0.01, 1, "margin").row(), "accuracy": 0.5}
    moved = (pictured_attack(rows, 0.3, linear, images, labels) - images for rows in ([row], []))
    short, long = (each.abs().amax(dim=(1, 2, 3)) for each in moved)
    start = torch.rand(images.shape, generator=torch.Generator().manual_seed(0)) * 0.6 - 0.3
    assert torch.all(short <= start.abs().amax(dim=(1, 2, 3)) + 0.02 + 1e-6)
    assert torch.all(long > 0.29)  # 40 steps of a tenth of eps


@pytest.mark.parametrize(
    "change",
    [{"steps": None}, {"step": None}, {"step": 1e6}, {"loss": None}, {"loss": "nonsense"}, {"restarts": 10**6}],
)
def test_a_picture_of_a_row_that_can_t_be_run_has_the_explorer_s_numbers(change):
    images = torch.rand(4, 1, 6, 6)
    labels = linear(images).argmax(1)
    row = {**Spec("pgd", 0.3, 2, 0.01, 1, "margin").row(), **change}
    shown, usual = (pictured_attack(rows, 0.3, linear, images, labels) for rows in ([row], []))
    assert torch.equal(shown, usual)


def test_numbers_that_results_can_t_hold_are_refused_before_the_attack():
    with pytest.raises(InputError, match="steps must be at least 1, not 0"):
        Numbers(steps=0)
    with pytest.raises(InputError, match="restarts must be at least 1, not 0"):
        Numbers(restarts=0)
