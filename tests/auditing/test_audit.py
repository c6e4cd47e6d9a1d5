"""The audit: on a network whose capsules are known by hand, and on one that is not."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import torch
from former_small import CONVOLUTION
from square import square_detector

import gammacaps
from gammacaps.attacks.capsules import push
from gammacaps.auditing.audit import audit
from gammacaps.auditing.class_attack import ClassAttack
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.curves import over_eps, over_tau
from gammacaps.auditing.held_out import halves, holds
from gammacaps.auditing.kinds import KINDS, NON_ROBUST, mean_interval, view
from gammacaps.auditing.parents import ParentCounter
from gammacaps.auditing.patterns import told_by_pattern
from gammacaps.auditing.run import audit_run
from gammacaps.auditing.table import compare, table, verdict
from gammacaps.auditing.told_apart import different_sets, pairs_told_apart
from gammacaps.auditing.worth import told
from gammacaps.data import load_set
from gammacaps.data.dataset import DataSet
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.files import read_json
from gammacaps.models import CapsuleModel, Parse, save
from gammacaps.names import SHIPPED, shipped_names
from gammacaps.training.losses import margin_loss

GAMMA, SOME_SET = "gamma-capsule", "gamma-capsule for some class set"
CONFIG = AuditConfig(limit=None, tau=0.1, taus=(), eps=(0.1, 0.7), device="cpu")


@pytest.fixture
def detector():
    return square_detector()


def length_by_hand(brightness):
    """Of the first capsule: squash(2 squash(1.5 (b + 0.01))); above 0.1 from b = 0.2882 on."""

    def squashed(n):
        return n * n / (1 + n * n)

    return squashed(2 * squashed(1.5 * (brightness + 0.01)))


def squares():
    """Ten images of each of three classes, by the brightness of the square; the rest of the image is noise."""
    brightness = torch.tensor([0.9] * 8 + [0.35] * 2 + [0.05] * 10 + [0.0] * 8 + [0.25] * 2)
    images = torch.rand(30, 1, 4, 4)
    images[:, :, :2, :2] = brightness.view(-1, 1, 1, 1)
    return DataSet(images, torch.arange(3).repeat_interleave(10), ("bright", "dim", "dark"), "squares", "here")


@pytest.fixture(scope="module")
def trained():
    """A small network after a few steps, so that its capsules know something of the classes."""
    torch.manual_seed(0)
    model = gammacaps.create("small", **CONVOLUTION, filters=8, primary_types=2, hidden=(6,), decoder=())
    images, labels = gammacaps.load_data("fashion-mini", "train")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for x, y in zip(images.split(48)[:25], labels.split(48)[:25], strict=True):
        optimizer.zero_grad()
        margin_loss(model(x), y).backward()
        optimizer.step()
    return model.eval()


ONE_OF_TEN_CLASSES = 9 + 1e-9  # what an image counts at most: the classes of which a capsule does not speak
TRAINED = AuditConfig(limit=60, tau=0.3, taus=(0.5,), eps=(0.01, 0.05), attack_steps=4, device="cpu")


def test_a_capsule_known_by_hand_has_its_rho_and_gamma(detector):
    data = squares()
    with torch.no_grad():
        lengths = detector.parse(data.images).activations[1]
    for image, found in zip(data.images, lengths, strict=True):
        assert found.tolist() == pytest.approx([length_by_hand(image[0, 0, 0].item()), 0, 0.5], abs=1e-6)

    results = audit(detector, data, CONFIG)
    (layer,) = results["layers"]
    square, zero, always = layer["capsules"]
    assert square["classes"] == [0]
    assert square["active"] == pytest.approx(1 / 3)
    assert square["agreement"] == 1
    assert square["rho"] == pytest.approx(3 * 1 / 3 - 1 / 3)
    assert square["rho_interval"] == pytest.approx([2 / 3, 2 / 3])  # within a class all images agree
    # Within 0.1, the 2 at 0.35 can be switched off and the 2 at 0.25 on: 8 of 30 count 2, 2 of 30 count -1.
    # Within 0.7 all can be: the 20 of other classes count -1.
    assert square["gamma"] == pytest.approx([(8 * 2 - 2) / 30, -20 / 30])
    assert square["kind"] == "non-robust"
    assert (zero["kind"], always["kind"]) == ("dead", "not useful")
    assert zero["gamma"] is always["gamma"] is None
    none_of_it = {GAMMA: 0, "non-robust": 0, "not useful": 1, "dead": 1, SOME_SET: 0}
    robust = none_of_it | {GAMMA: 1, SOME_SET: 1}
    over_eps = [{"eps": 0, **robust}, {"eps": 0.1, **robust}, {"eps": 0.7, **none_of_it, "non-robust": 1}]
    assert layer["over_eps"] == over_eps
    assert results["verdict"] == (
        "0 of 2 active hidden capsules are gamma-capsules at eps 0.7 and tau 0.1 (1 non-robust, 1 not useful), "
        "1 of 3 are dead; 0% of active capsules have a single parent."
    )
    weaker = audit(detector, data, dataclasses.replace(CONFIG, eps=(0.1,)))
    assert weaker["layers"][0]["capsules"][0]["kind"] == GAMMA
    assert weaker["verdict"].startswith("1 of 2 active hidden capsules are gamma-capsules at eps 0.1 and tau 0.1")


@pytest.mark.slow
def test_another_threshold_is_another_capsule(detector):
    # Above 0.4, from b = 0.55 on, are the 8 at 0.9 alone, and nothing within 0.1 crosses it; above 0.05, from b = 0.23
    # on, are the 2 of class 2 at 0.25 too. Then 12 of 30 are active, rho is 3 * 10/30 - 12/30, and within 0.1 the 2 at
    # 0.25 are still on, as are all of class 0; those at 0.05 stay off.
    config = dataclasses.replace(CONFIG, eps=(0.1,), taus=(0.05, 0.4))
    (layer,) = audit(detector, squares(), config)["layers"]
    assert [(row["tau"], row[GAMMA]) for row in layer["over_tau"]] == [(0.05, 1), (0.1, 1), (0.4, 1)]
    assert layer["capsules"][0]["gamma_capsule_at"] == [0.05, 0.1, 0.4]
    for tau, rho, gamma in ((0.4, 2 * 8 / 30, 2 * 8 / 30), (0.05, 1 - 12 / 30, 2 * 10 / 30 - 2 / 30)):
        (layer,) = audit(detector, squares(), dataclasses.replace(config, tau=tau, taus=()))["layers"]
        assert layer["capsules"][0]["rho"] == pytest.approx(rho)
        assert layer["capsules"][0]["gamma"] == pytest.approx([gamma])


@pytest.mark.parametrize("upward", [False, True])
def test_the_attack_reaches_the_extreme_of_the_ball(detector, upward):
    data = squares()
    count = len(data.images)
    chosen, until = torch.zeros(count, dtype=torch.int64), torch.full((count,), 2.0 if upward else -1.0)
    starts, directions = torch.zeros_like(data.images), torch.full((count,), upward)
    found, passes = push(detector, 1, data.images, chosen, directions, until, starts + 0.01, eps=0.2, step=1.0, steps=5)
    for image, value in zip(data.images, found, strict=True):
        b = image[0, 0, 0].item()
        end = min(1.0, b + 0.2) if upward else max(0.0, b - 0.2)
        assert value.item() == pytest.approx(length_by_hand(end), abs=1e-5)
    assert passes == 6 * count
    # A row that has reached its goal at the start is left alone.
    until = torch.full((count,), -1.0 if upward else 2.0)
    assert push(detector, 1, data.images, chosen, directions, until, starts, eps=0.2, step=1.0, steps=5)[1] == count


@pytest.mark.slow
def test_gamma_is_never_above_rho_and_falls_with_eps(trained):
    results = audit(trained, load_set("fashion-mini"), TRAINED)
    useful = [row for row in results["layers"][0]["capsules"] if row["gamma"] is not None]
    assert len(useful) >= 3
    for row in useful:
        values = [row["rho"], *row["gamma"]]
        assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(values))
        assert row["gamma"][-1] - 1e-12 <= row["gamma_any"] <= row["rho"] + 1e-12
    assert any(row["gamma"][-1] < row["rho"] - 0.1 for row in useful)  # the attack does something
    kinds = [{k: v for k, v in row.items() if k != SOME_SET} for row in results["layers"][0]["over_eps"]]
    assert all(sum(row.values()) - row["eps"] == 6 for row in kinds)


@pytest.mark.slow
def test_counts_do_not_depend_on_the_batch(detector):
    """Of capsules that are nowhere so near to tau that rounding could decide."""
    data = squares()

    def counted(batch):
        (layer,) = audit(detector, data, dataclasses.replace(CONFIG, batch=batch))["layers"]
        return layer["counts"], layer["over_eps"], layer["over_tau"], [row["gamma"] for row in layer["capsules"]]

    assert counted(7) == counted(400)


@pytest.mark.slow
def test_a_trained_network_s_gammas_do_not_depend_on_the_batch(trained):
    def gammas(batch):
        config = dataclasses.replace(TRAINED, limit=40, eps=(0.03,), batch=batch)
        (layer,) = audit(trained, load_set("fashion-mini"), config)["layers"]
        return [(row["rho"], *(row["gamma"] or ())) for row in layer["capsules"]]

    # In batches of another size sums are rounded otherwise: of each capsule one image of 40 may pass tau by that.
    for few, many in zip(gammas(19), gammas(400), strict=True):
        assert few == pytest.approx(many, abs=ONE_OF_TEN_CLASSES / 40)


@pytest.mark.slow
def test_gamma_is_what_a_second_reckoning_gives(trained):
    """Every image pushed to the end, down or up as the capsule's own class set says."""
    data, radius = load_set("fashion-mini"), 0.03
    images, labels = balanced(data, 60)
    starts = torch.from_numpy(2 * np.random.default_rng((0, 1)).random(images.shape, dtype=np.float32) - 1)
    with torch.no_grad():
        clean = trained.parse(images).activations[1]
    results = audit(trained, data, dataclasses.replace(TRAINED, eps=(radius,)))
    useful = [row for row in results["layers"][0]["capsules"] if row["gamma"] is not None]
    assert len(useful) >= 3
    for row in useful:
        speaks = torch.tensor([label in row["classes"] for label in labels.tolist()])
        chosen, until = torch.full((60,), row["capsule"]), torch.where(speaks, -1.0, 2.0)
        found, _ = push(trained, 1, images, chosen, ~speaks, until, starts, eps=radius, step=1.0, steps=4)
        size, total = len(row["classes"]), 0
        for m in range(60):
            lengths = found[m].item(), clean[m, row["capsule"]].item()
            total += (10 - size) * (min(lengths) > 0.3) if speaks[m] else -size * (max(lengths) > 0.3)
        # Not all are in the same batches, so that of each capsule one image of 60 may pass tau by rounding.
        assert row["gamma"] == pytest.approx([total / 60], abs=ONE_OF_TEN_CLASSES / 60)


@pytest.mark.slow
def test_a_strong_audit_finds_at_least_what_the_usual_one_does(trained):
    data, config = load_set("fashion-mini"), dataclasses.replace(TRAINED, limit=40, eps=(0.03,))
    usual, strong = (audit(trained, data, dataclasses.replace(config, strong=strong)) for strong in (False, True))
    rows = [[row for row in results["layers"][0]["capsules"] if row["gamma"]] for results in (usual, strong)]
    assert len(rows[0]) == len(rows[1]) >= 3
    for before, after in zip(*rows, strict=True):
        assert (before["rho"], before["classes"]) == (after["rho"], after["classes"])
        assert after["gamma"][0] <= before["gamma"][0] + 1e-12
        assert after["gamma_any"] <= before["gamma_any"] + 1e-12
    (layer,) = strong["layers"]
    assert [one["steps"] for one in layer["tries"]] == [4, 16, 16, 16, 16, 16]
    # What one try has switched at all thresholds, the next leaves alone.
    left = [one["pairs"] for one in layer["tries"][:5]]
    assert left == sorted(left, reverse=True)
    assert strong["settings"]["strong"]
    assert "in a strong audit" in strong["verdict"]
    assert "Strong audit: after the usual attack of 4 steps, 16 steps each from a random point" in table(strong)
    assert "trong audit" not in table(usual)
    assert "no fair comparison" in compare([usual, strong])


class Saturated(CapsuleModel):
    """A capsule that is on where the image is brighter than 1/2, so steeply that its length is 1 from 0.6 on."""

    image_shape, classes, layers = (1, 4, 4), 2, ("primary", "hidden 1", "class")

    def __init__(self):
        super().__init__()
        self.steep = torch.nn.Parameter(torch.tensor(200.0))

    def parse(self, images, *, couplings=True):
        on = torch.sigmoid(self.steep * (images.mean((1, 2, 3)) - 0.5))  # B
        below, middle, above = torch.ones_like(on)[:, None], torch.stack((on, 0 * on), 1), torch.stack((on, 1 - on), 1)
        coupled = tuple(on.new_full((len(on), lower, 2), 0.5) for lower in (1, 2)) if couplings else (None, None)
        lengths = (below, middle, above)
        return Parse(self.layers, tuple(x[..., None] for x in lengths), lengths, coupled, (None, None), above)


def test_a_capsule_whose_length_is_flat_is_switched_by_its_log_odds_alone():
    model, images = Saturated(), torch.full((3, 1, 4, 4), 0.65)
    at = {"capsules": torch.zeros(3, dtype=torch.int64), "upward": torch.zeros(3, dtype=torch.bool)}
    how = {**at, "until": torch.full((3,), 0.5), "starts": torch.rand(3, 1, 4, 4) / 9, "eps": 0.2, "step": 1.0}
    by_length, passes = push(model, 1, images, **how, steps=10)
    assert by_length.tolist() == [1, 1, 1]
    assert passes == 3 * 11
    by_log_odds, _ = push(model, 1, images, **how, steps=10, loss="log-odds")
    assert by_log_odds.max() < 0.5
    assert by_log_odds.dtype == torch.float32
    assert all(p.dtype == torch.float32 and p.requires_grad for p in model.parameters())


def test_an_unknown_loss_of_the_attack_on_capsules_is_told(detector):
    data, rows = squares(), torch.zeros(30)
    given = (rows.long(), rows.bool(), rows, torch.zeros_like(data.images))
    with pytest.raises(InputError, match=r"no loss of the attack on capsules 'lenght' .did you mean 'length'"):
        push(detector, 1, data.images, *given, eps=0.1, step=1.0, steps=1, loss="lenght")


def test_a_strong_audit_refutes_a_capsule_that_only_looks_robust():
    images = torch.cat([torch.full((10, 1, 4, 4), b) for b in (0.65, 0.2)])
    data = DataSet(images, torch.arange(2).repeat_interleave(10), ("bright", "dark"), "squares", "here")
    config = AuditConfig(limit=None, taus=(), eps=(0.2,), device="cpu")
    usual, strong = (audit(Saturated(), data, dataclasses.replace(config, strong=strong)) for strong in (False, True))
    first = usual["layers"][0]["capsules"][0]
    assert (first["kind"], first["gamma"], first["held_out"]) == (GAMMA, [0.5], True)
    assert (usual["held_out"], usual["class_sets"], usual["pairs_told_apart"]) == (1, 1, 1)
    last = strong["layers"][0]["capsules"][0]
    assert (last["kind"], last["gamma"], last["held_out"]) == ("non-robust", [0.0], False)
    assert (strong["held_out"], strong["class_sets"], strong["pairs_told_apart"]) == (0, 0, 0)
    by_log_odds = {"start": "random", "loss": "log-odds", "steps": 40, "pairs": 10, "crossed": 10}
    assert strong["layers"][0]["tries"][-1] == by_log_odds
    assert usual["pattern"]["clean"] == strong["pattern"]["clean"] == 1
    assert "In 10 pairs the capsule was so long that squash is flat" in table(strong).replace("\n", " ")
    assert "The gamma-capsule tells 1 of 1 pairs of classes apart." in table(usual)


def test_classes_are_found_on_one_half_and_tested_on_the_other():
    """Three capsules: one speaks for class 0 in both halves, one for another class in each, one for class 0 in one."""
    labels = torch.arange(3).repeat(4)  # the halves: images 0 to 2 and 6 to 8, and the others
    first, own = halves(labels), labels == 0
    assert first.tolist() == [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3
    lengths = torch.stack((own, torch.where(first, own, labels == 1), own & first), 1).float()
    seen = view(lengths, labels, 3, 0.5, seed=0)
    useful = dataclasses.replace(seen, useful=torch.tensor([True, True, True]))
    assert holds(useful, lengths, lengths) == [True, False, False]
    # An attack that can switch the first one off everywhere leaves nothing.
    assert holds(useful, torch.zeros_like(lengths), lengths)[0] is False
    assert holds(dataclasses.replace(seen, useful=torch.tensor([False, True, True])), lengths, lengths)[0] is None
    alone = view(lengths[:3], labels[:3], 3, 0.5, seed=0)  # a half without images
    assert holds(alone, lengths[:3], lengths[:3]) == [None] * 3


def test_sets_and_pairs_are_counted():
    assert different_sets([[0, 1], [1, 0], [2]]) == 2
    assert pairs_told_apart([], 4) == 0
    assert pairs_told_apart([[0]], 4) == 3
    assert pairs_told_apart([[0, 1], [0, 2]], 4) == 6
    sets = [[0, 1, 2], [2, 3], [0, 4]]
    by_hand = [(a, b) for a, b in itertools.combinations(range(6), 2) if any((a in s) != (b in s) for s in sets)]
    assert pairs_told_apart(sets, 6) == len(by_hand)


def test_the_class_is_told_from_the_pattern_as_naive_bayes_by_hand_does():
    torch.manual_seed(2)
    labels = torch.arange(3).repeat(8)
    clean, attacked = torch.rand(24, 5) < 0.2 + 0.3 * labels.unsqueeze(1), torch.rand(24, 5) < 0.5
    found, first = told_by_pattern(clean, attacked, labels, 3), halves(labels)
    for name, tested in (("clean", clean), ("attacked", attacked)):
        right = 0
        for m in range(24):
            others = [n for n in range(24) if first[n] != first[m]]
            scores = []
            for k in range(3):
                of_class = [n for n in others if labels[n] == k]
                on = [(sum(clean[n, i].item() for n in of_class) + 1) / (len(of_class) + 2) for i in range(5)]
                likely = [p if tested[m, i] else 1 - p for i, p in enumerate(on)]
                scores.append(math.prod(likely) * (len(of_class) + 1) / (len(others) + 3))
            right += scores.index(max(scores)) == labels[m]
        assert found[name] == pytest.approx(right / 24)
    assert told_by_pattern(clean[:3], attacked[:3], labels[:3], 3) is None


@pytest.mark.slow
def test_patterns_are_those_of_the_attacked_images(trained):
    results = audit(trained, load_set("fashion-mini"), dataclasses.replace(TRAINED, limit=30, eps=(0.02,)))
    images, labels = balanced(load_set("fashion-mini"), 30)
    attack = ClassAttack(trained, images, labels, batch=64, seed=0)
    changed = attack.at(0.02)
    assert changed is attack.at(0.02)
    assert 0.019 < (changed - images).abs().max() <= 0.02 + 1e-6
    with torch.no_grad():
        patterns = [trained.parse(x).activations[1] > 0.3 for x in (images, changed)]
        own = (trained(images).argmax(1) == labels).double().mean().item()
    found = results["pattern"]
    assert (found["capsules"], found["eps"], found["network_clean"]) == (6, 0.02, pytest.approx(own))
    by_hand = told_by_pattern(*patterns, labels, 10)
    for name in ("clean", "attacked"):
        assert found[name] == pytest.approx(by_hand[name], abs=1.5 / 30)  # an image may pass tau by rounding
    assert found["network_attacked"] <= found["network_clean"]


def test_an_older_audit_says_nothing_of_what_it_did_not_look_at():
    older = {"settings": {}, "layers": [{"counts": {GAMMA: 3}}], "class_names": ["a", "b"], "data": {"images": 9}}
    assert told(older) == []
    newer = {**older, "held_out": 1, "class_sets": 2, "pairs_told_apart": 1}
    assert told(newer)[0] == "The 3 gamma-capsules have 2 different class sets and tell 1 of 1 pairs of classes apart."
    assert told(newer)[1].startswith("1 of 3 gamma-capsules remains so")


def test_single_parents_are_counted_among_active_capsules():
    tree = ParentCounter(0.1, torch.device("cpu"))
    couplings = torch.tensor([[[0.6, 0.3, 0.1], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]]])
    tree.update(torch.tensor([[0.9, 0.5, 0.05]]), couplings, None)  # the third is not active
    found = tree.compute()
    assert (found["active"], found["single_parent"]) == (2, 0.5)
    assert found["margin"] == pytest.approx((0.3 + 0.1) / 2)
    assert ParentCounter(0.1, torch.device("cpu")).active == 0
    windowed = ParentCounter(0.1, torch.device("cpu"))
    windowed.update(torch.tensor([[0.9, 0.5, 0.5]]), couplings, torch.tensor([3, 3, 1]))  # the third has no choice
    assert windowed.compute()["active"] == 2


def test_intervals_take_the_classes_as_fixed():
    values, labels = torch.rand(12, 3).double(), torch.arange(3).repeat(4)
    low, high = mean_interval(values, labels)
    for i in range(3):
        within = sum((values[labels == n, i] - values[labels == n, i].mean()).square().sum().item() for n in range(3))
        half = 1.959964 * math.sqrt(within / 12 / 12)
        mean = values[:, i].mean().item()
        assert (low[i].item(), high[i].item()) == pytest.approx((mean - half, mean + half), abs=1e-6)


@pytest.mark.slow
def test_a_run_is_audited_within_its_own_radius_and_compared(trained, tmp_path):
    config = AuditConfig(limit=20, tau=0.3, taus=(0.5,), attack_steps=1, device="cpu", data="fashion-mini")
    results = []
    for name, robust in (("attacked", True), ("plain", False)):
        save(trained, tmp_path / name)
        stored = json.loads((tmp_path / name / "config.json").read_text())
        training = {"data": "fashion-mini", "eps": 0.04, "robust": robust}
        (tmp_path / name / "config.json").write_text(json.dumps({**stored, "train": training}))
        results.append(audit_run(tmp_path / name, config, quiet=True))
    assert results[0]["eps"] == [0.02, 0.04]
    assert json.loads((tmp_path / "attacked" / "audit.json").read_text()) == results[0]
    for picture in ("audit-eps.png", "audit-tau.png"):
        assert (tmp_path / "plain" / picture).read_bytes().startswith(b"\x89PNG")
    text = compare(results)
    assert "attacked  sda      under attack" in text
    assert "plain     sda      standard" in text
    assert "upper bound" in text
    assert "no fair comparison" not in text
    assert "no fair comparison" in compare([results[0], {**results[1], "tau": 0.2}])
    words = table(results[0])
    assert results[0]["verdict"] in words
    assert "primary to hidden 1" in words
    assert "upper bound" in words
    assert len(over_eps(results).axes) == len(over_tau(results).axes) == 2
    save(trained, tmp_path / "untold")
    assert audit_run(tmp_path / "untold", config, quiet=True)["eps"] == [0.05, 0.1]
    with pytest.raises(InputError, match="does not say what it was trained on: name a data set"):
        audit_run(tmp_path / "untold", dataclasses.replace(config, data=None), quiet=True)


def test_any_layer_and_matrix_capsules_can_be_audited(trained):
    every = AuditConfig(limit=10, tau=0.1, taus=(), eps=(0.02,), attack_steps=1, capsules=5, device="cpu")
    results = audit(trained, load_set("fashion-mini"), dataclasses.replace(every, layers=("primary", "class")))
    primary, classes = results["layers"]
    assert (len(primary["capsules"]), primary["of"]) == (5, 32)
    assert len({row["capsule"] for row in primary["capsules"]}) == 5
    assert classes["of"] == 10
    assert "primary and class capsules" in results["verdict"]
    assert "5 of the 32 capsules of primary" in table(results)

    model = gammacaps.create("matrix", image_shape=(1, 14, 14), classes=3, filters=8, types=(3, 3))
    data = DataSet(torch.rand(9, 1, 14, 14), torch.tensor([0, 1, 2] * 3), ("a", "b", "c"), "made", "here")
    results = audit(model, data, every)
    assert [layer["layer"] for layer in results["layers"]] == ["hidden 1", "hidden 2"]
    assert json.loads(json.dumps(results)) == results
    assert "hidden capsules are gamma-capsules" in table(results)


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        (("cnn", {}), {}, "A CNN has no capsules to audit"),
        (("small", {"scale_over": "batch"}), {}, "depends on an image's neighbours"),
        (("small", {}), {"layers": ("hiden 1",)}, "no layer 'hiden 1' .did you mean 'hidden 1'"),
        (("small", {"hidden": ()}), {}, "no hidden capsules: name the layers to audit"),
        (("small", {"classes": 4}), {}, "audit it on data like its own"),
    ],
)
def test_networks_that_can_t_be_audited_get_one_sentence(model, changes, words):
    preset, shape = model
    with pytest.raises(InputError, match=words):
        audit(gammacaps.create(preset, **shape), load_set("fashion-mini"), AuditConfig(**changes, device="cpu"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"eps": (-0.1,)}, "eps must be 0 or more, not -0.1"),
        ({"attack_step": math.nan}, "attack_step must be 0 or more"),
        ({"tau": 1.0}, "tau must be from 0 to below 1"),
        ({"taus": (0.1, -0.2)}, "tau must be from 0 to below 1, as lengths are, not -0.2"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"attack_steps": 0}, "attack_steps must be at least 1"),
        ({"attack_steps": 3000, "strong": True}, "attack_steps must be at most 2,500"),
        ({"seed": -1}, "seed must be from 0 to 2147483647, not -1"),
    ],
)
def test_options_that_make_no_sense_get_one_sentence(options, words):
    with pytest.raises(InputError, match=words):
        AuditConfig(**options)


@pytest.mark.parametrize(
    ("layers", "lows", "words"),
    [
        (["hidden 1"], [[0.1, 0.2]], " at eps 0.1 and tau 0.5; "),
        (["hidden 1"], [[0.1, -0.01]], ", 1 of them not certain (capsule 1: its interval holds 0); "),
        (
            ["hidden 1", "hidden 2"],
            [[-0.1, 0.2], [-0.1, 0.0]],
            "(hidden 1 capsule 0, hidden 2 capsule 0, hidden 2 capsule 1: their intervals hold 0); ",
        ),
        (["hidden 1"], [[0.0] * 5], "(capsule 0, capsule 1, capsule 2 and 2 more: their intervals hold 0); "),
    ],
)
def test_the_verdict_names_gamma_capsules_that_are_not_certain(layers, lows, words):
    results = {
        "eps": [0.1],
        "tau": 0.5,
        "settings": {},
        "tree": [{"active": 1, "single_parent": 1.0}],
        "layers": [
            {
                "layer": name,
                "counts": {**dict.fromkeys(KINDS, 0), GAMMA: len(own)},
                "capsules": [
                    {"capsule": k, "kind": GAMMA, "gamma_interval": [low, 0.4], "gamma_capsule_at": [0.5]}
                    for k, low in enumerate(own)
                ],
            }
            for name, own in zip(layers, lows, strict=True)
        ],
    }
    said = verdict(results)
    assert words in said
    assert ("not certain" in said) == (min(map(min, lows)) <= 0)
    results["layers"][0]["counts"][NON_ROBUST] = 2
    with_others = verdict(results)
    assert "2 non-robust); " in with_others
    assert ") (" not in with_others


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_audits_say_their_verdict_in_today_s_words(name):
    results = read_json(SHIPPED / name / "audit.json")
    assert results["verdict"] == verdict(results)
