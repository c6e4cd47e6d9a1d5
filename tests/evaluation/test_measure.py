"""Attacks image by image: the worst case, and going on where an evaluation stopped."""

import copy
import dataclasses
import json
from pathlib import Path

import pytest
import torch

import gammacaps
from gammacaps.attacks import attack_names, suites
from gammacaps.attacks.attack import Victim
from gammacaps.data.fingerprint import fingerprint
from gammacaps.errors import InputError
from gammacaps.evaluation import measure as measuring
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.measure import Measured, rows, worst
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.evaluation.radii import radii
from gammacaps.evaluation.robustness import robustness
from gammacaps.evaluation.specs import Spec, specs_for
from gammacaps.evaluation.table import shown, title
from gammacaps.models.folder import write_config
from gammacaps.runs.run import Run, common_radius


class Linear(torch.nn.Module):
    """A classifier of 5x5 images whose robustness is known: the margin over the l1 norm of the weights' difference."""

    def __init__(self, classes=3):
        super().__init__()
        self.weight = torch.randn(classes, 25, generator=torch.Generator().manual_seed(0))

    def forward(self, images):
        return images.flatten(1) @ self.weight.T


def examples(classes=3, count=40):
    """Images in the middle of [0, 1], where the box cuts nothing off the ball, and right labels."""
    model = Linear(classes)
    images = 0.3 + 0.4 * torch.rand(count, 1, 5, 5, generator=torch.Generator().manual_seed(1))
    return model, images, model(images).argmax(1)


def truly_robust(model, images, labels, eps):
    """By hand: no wrong class can catch up within eps."""
    stands = []
    for image, label in zip(images, labels.tolist(), strict=True):
        gaps = [(model.weight[label] - w, w) for n, w in enumerate(model.weight) if n != label]
        stands.append(all(float(image.flatten() @ gap) > eps * float(gap.abs().sum()) for gap, _ in gaps))
    return sum(stands)


QUICK = EvaluateConfig(attacks=("noise", "fgsm", "pgd", "pgd-margin"), eps=(0.02, 0.05), batch=16, checks=False)


@pytest.mark.slow
def test_the_worst_case_is_what_is_true_of_a_linear_network():
    model, images, labels = examples()
    results = robustness(model, images, labels, QUICK)
    assert results["clean"]["accuracy"] == 1
    for row in results["worst"]:
        true = truly_robust(model, images, labels, row["eps"])
        assert 0 < true < len(images)
        assert row["correct"] == true
        under = [r for r in results["attacks"] if r["eps"] == row["eps"]]
        assert [r["attack"] for r in under] == ["noise", "fgsm", "pgd", "pgd-margin"]
        assert min(r["correct"] for r in under) == true
        assert row["won"]["pgd-margin"]["broke"] == len(images) - true


def test_progress_says_which_images_it_is_about():
    pytest.importorskip("pyautoattack")
    model, images, labels = examples(classes=5)
    labels[:3] = (labels[:3] + 1) % 5  # three are wrong when clean
    told = {}
    config = EvaluateConfig(attacks=("pgd", "apgd-ce", "apgd-t"), eps=(8 / 255,), checks=False)
    outcome = robustness(model, images, labels, config, progress=lambda what, done, total: told.update({what: total}))
    left = next(row["images"] for row in outcome["attacks"] if row["attack"] == "pgd") - 3
    assert told["pgd eps 8/255 on those right when clean"] == left == 37
    assert told["apgd-t eps 8/255 on those that earlier attacks left"] < left


def test_won_and_alone_by_hand():
    correct = torch.tensor([True, True, True, True, False])
    one = Measured(Spec("fgsm", 0.1), torch.tensor([1, 1, 0, 0, 0]).bool(), torch.ones(5).bool(), 0.0, 0.0)
    two = Measured(Spec("pgd", 0.1), torch.tensor([0, 1, 1, 0, 0]).bool(), torch.ones(5).bool(), 0.0, 0.0)
    (row,) = worst([one, two], correct)
    assert (row["correct"], row["images"]) == (1, 5)
    assert row["won"] == {"fgsm": {"broke": 2, "alone": 1}, "pgd": {"broke": 2, "alone": 1}}
    assert [r["correct"] for r in rows([one, two], correct)] == [2, 2]


def test_parts_of_autoattack_add_up():
    correct = torch.ones(4).bool()
    done = torch.ones(4).bool()
    first = Measured(Spec("apgd-ce", 0.1), torch.tensor([1, 0, 0, 0]).bool(), done, 0.0, 0.0)
    second = Measured(Spec("fab-t", 0.1, after=("apgd-ce",)), torch.tensor([0, 1, 0, 0]).bool(), done, 0.0, 0.0)
    assert [r["correct"] for r in rows([first, second], correct)] == [3, 2]
    assert worst([first, second], correct)[0]["won"] == {"autoattack": {"broke": 2, "alone": 2}}


def counted(monkeypatch):
    """Counts the images that attacks work on; with `stop`, interrupts in the middle."""
    calls = []
    real = measuring.attacked_images

    def spy(spec, model, images, *rest):
        calls.append((spec.attack, len(images)))
        if calls[0] == "stop" and len(calls) == 4:
            raise KeyboardInterrupt
        return real(spec, model, images, *rest)

    monkeypatch.setattr(measuring, "attacked_images", spy)
    return calls


@pytest.mark.slow
def test_an_interrupted_evaluation_goes_on_to_the_same_result(tmp_path, monkeypatch):
    model, images, labels = examples()
    whole = robustness(model, images, labels, QUICK)
    calls = counted(monkeypatch)
    calls.append("stop")
    with pytest.raises(KeyboardInterrupt):
        robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path / "kept", weights="w", data="d"))
    calls.clear()
    again = robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path / "kept", weights="w", data="d"))
    assert sum(n for _, n in calls) == 8 * len(images) - 2 * QUICK.batch  # two batches were done before
    calls.clear()
    for one, other in ((whole, again), (again, whole)):
        assert [strip(r) for r in one["attacks"]] == [strip(r) for r in other["attacks"]]
        assert one["worst"] == other["worst"]
    # Adding an attack, or images, repeats nothing.
    more = EvaluateConfig(attacks=(*QUICK.attacks, "pgd-dlr"), eps=QUICK.eps, batch=16, checks=False)
    robustness(model, images, labels, more, store=PredictionStore(tmp_path / "kept", weights="w", data="d"))
    assert {name for name, _ in calls} == {"pgd-dlr"}
    calls.clear()
    # Other weights: nothing of it counts.
    robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path / "kept", weights="other", data="d"))
    assert sum(n for _, n in calls) == 8 * len(images)


def strip(row):
    return {k: v for k, v in row.items() if k != "seconds"}


@pytest.mark.slow
def test_images_added_later_repeat_nothing(tmp_path, monkeypatch):
    model, images, labels = examples()
    store = PredictionStore(tmp_path / "kept", weights="w", data="d")
    some = torch.arange(0, 40, 2)
    robustness(model, images[some], labels[some], QUICK, places=some, store=store)
    calls = counted(monkeypatch)
    robustness(
        model,
        images,
        labels,
        QUICK,
        places=torch.arange(40),
        store=PredictionStore(tmp_path / "kept", weights="w", data="d"),
    )
    assert sum(n for _, n in calls) == 8 * 20


def test_out_of_time_says_so_and_its_figures_are_of_the_images_done(monkeypatch):
    model, images, labels = examples()
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    config = EvaluateConfig(attacks=("fgsm", "pgd"), eps=(0.05,), batch=10, minutes=1.0, checks=False)
    results = robustness(model, images, labels, config)
    assert not results["complete"]
    fgsm, pgd = results["attacks"]
    assert fgsm["images"] == 20
    assert (pgd["images"], pgd["accuracy"], pgd["complete"]) == (0, None, False)
    assert (results["worst"][0]["images"], results["worst"][0]["accuracy"]) == (0, None)


@pytest.mark.slow
def test_a_broken_store_is_one_sentence(tmp_path):
    model, images, labels = examples()
    robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path, weights="w", data="d"))
    path = next(tmp_path.glob("pgd-eps0.02*.json"))
    path.write_text(path.read_text()[:40])
    with pytest.raises(InputError, match="is broken: delete it"):
        robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path, weights="w", data="d"))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Victim(2, capsules=True, other="net"), ["pgd-dlr was left out: its loss needs 3", "apgd-t was left out"]),
        (
            Victim(3, capsules=True, other="net"),
            ["apgd-t was left out: its loss needs 4 classes and the network has 3"],
        ),
        (Victim(5, capsules=False, other="net"), ["vote was left out: the network has no capsules"]),
        (Victim(100, capsules=True, other="net"), []),
        (Victim(10, capsules=True), ["transfer was left out: there is no other network"]),
    ],
)
def test_what_can_t_run_is_said_and_the_rest_goes_on(kind, words):
    pytest.importorskip("pyautoattack")
    specs, skipped = specs_for(kind, EvaluateConfig(attacks=("strong",)), 0.1)
    assert len(specs) + len(skipped) == len(attack_names())
    assert len(skipped) == len(words)
    for sentence, start in zip(skipped, words, strict=True):
        assert start in sentence
    losses = {spec.attack: spec.loss for spec in specs}
    assert losses["pgd-ce"] == ("ce-log" if kind.capsules else "ce")


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "left_out"), [(2, 3), (5, 1), (100, 1)])
def test_networks_of_few_and_many_classes_are_evaluated(classes, left_out):
    pytest.importorskip("pyautoattack")
    model, images, labels = examples(classes, count=6)
    config = EvaluateConfig(attacks=("strong",), eps=(0.02, 0.4), checks=False)
    results = robustness(model, images, labels, config, other=Linear(classes))
    assert len(results["skipped"]) == left_out  # of a network without capsules always the vote attack
    assert results["complete"]
    near, far = results["worst"]
    assert near["correct"] == truly_robust(model, images, labels, 0.02)
    assert far["correct"] == 0
    auto = [row["correct"] for row in results["attacks"] if row["attack"] == "auto-square"]
    assert auto == [near["correct"], 0]


def test_suites_name_known_attacks_in_order_and_grey_joins_from_one_half_on():
    for names in suites().values():
        assert [name for name in attack_names() if name in names] == list(names)
    config, kind = EvaluateConfig(attacks=("paper", "noise")), Victim(10, capsules=True)
    assert config.named_attacks() == ("noise", "fgsm", "pgd")
    assert [s.attack for s in specs_for(kind, config, 0.5)[0]] == ["noise", "fgsm", "pgd"]
    standard = EvaluateConfig(attacks=("standard",))
    assert specs_for(kind, standard, 0.5)[0][-1].attack == "grey"
    assert "grey" not in [s.attack for s in specs_for(kind, standard, 0.49)[0]]


def test_a_key_and_a_fingerprint_change_with_what_they_stand_for():
    assert Spec("pgd", 0.1, 40).key != Spec("pgd", 0.1, 41).key
    assert Spec("pgd", 0.1, 40).key == Spec("pgd", 0.1, 40).key
    a = torch.rand(3, 4)
    assert fingerprint(a) == fingerprint(a.clone()) != fingerprint(a + 1e-6)
    assert fingerprint(a) != fingerprint(a.view(4, 3))


@pytest.mark.slow
def test_the_whole_of_autoattack_is_what_autoattack_itself_gives():
    auto = pytest.importorskip("pyautoattack")
    model, images, labels = examples(classes=5, count=13)
    config = EvaluateConfig(attacks=("autoattack",), eps=(0.035,), batch=8, checks=False)
    results = robustness(model, images, labels, config)
    itself = auto.AutoAttack(model, eps=0.035, seed=0)
    itself.apgd_targeted.n_target_classes = itself.fab.n_target_classes = 4
    attacked, _ = itself.run_standard_evaluation(images, labels, batch_size=8)
    kept = int((model(attacked).argmax(1) == labels).sum())
    assert results["worst"][0]["correct"] == kept
    assert 0 < kept < len(images)
    assert [r["attack"] for r in shown(results["attacks"])] == ["autoattack"]
    part = robustness(model, images, labels, dataclasses.replace(config, attacks=("apgd-ce",)))
    assert [title(r) for r in shown(part["attacks"])] == ["AutoAttack's APGD-CE eps 0.035"]


def test_the_curve_counts_where_it_passes_a_radius_of_the_evaluation():
    model, images, labels = examples()
    config = EvaluateConfig(attacks=("noise",), eps=(0.05,), sweep=(0.02, 0.05), checks=False)
    results = robustness(model, images, labels, config)
    (row,) = results["worst"]
    assert row["correct"] == truly_robust(model, images, labels, 0.05) == results["sweep"][1]["correct"]
    assert set(row["won"]) == {"noise", "sweep"}


def test_runs_that_are_compared_have_one_radius(tmp_path):
    for name, train in (("clean", {"robust": False, "eps": 0.3}), ("robust", {"robust": True, "eps": 0.2})):
        (tmp_path / name).mkdir()
        write_config(tmp_path / name, {"model": {}, "train": train})
    clean, robust = Run(tmp_path / "clean"), Run(tmp_path / "robust")
    assert common_radius([clean, robust]) == 0.2
    assert common_radius([clean]) == 0.1
    assert radii(EvaluateConfig(), clean) == (0.1,)
    assert radii(EvaluateConfig(), robust) == (0.2,)
    assert radii(EvaluateConfig(attacks=("paper",)), robust) == (0.1, 0.3, 0.5)


def test_an_eps_given_twice_is_measured_once():
    model, images, labels = examples(count=5)
    results = robustness(model, images, labels, dataclasses.replace(QUICK, eps=(0.05, 0.05)))
    assert len(results["attacks"]) == 4


def test_a_network_s_identity_is_its_weights_and_its_configuration():
    small = {"filters": 4, "primary_types": 2, "hidden": (3,), "decoder": ()}
    first, second = (gammacaps.create("small", iterations=r, **small) for r in (3, 2))
    second.load_state_dict(first.state_dict())
    assert identity(first) != identity(second)
    assert identity(first) == identity(copy.deepcopy(first))
    with pytest.raises(InputError, match="needs the fingerprints"):
        PredictionStore(Path("somewhere"))


def test_the_store_holds_plain_json(tmp_path):
    model, images, labels = examples(count=5)
    robustness(model, images, labels, QUICK, store=PredictionStore(tmp_path, weights="w", data="d"))
    entry = json.loads(next(tmp_path.glob("fgsm-eps0.05*.json")).read_text())["kept"]
    assert entry["attack"]["eps"] == 0.05
    assert set(entry["predicted"]) == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attacks": ("stronger",)}, "no attack or suite 'stronger' .did you mean 'strong'"),
        ({"eps": (1.5,)}, "eps must be at most 1, the range of a pixel, not 1.5"),
        ({"sweep": (-0.1,)}, "sweep must be 0 or more"),
        ({"minutes": 0.0}, "minutes must be more than 0"),
        ({"limit": 0}, "limit must be at least 1"),
    ],
)
def test_wrong_options_are_one_sentence(options, words):
    with pytest.raises(InputError, match=words):
        EvaluateConfig(**options)
