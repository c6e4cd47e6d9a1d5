import copy
import re
from pathlib import Path

import pytest
import torch
from former_small import FORMER_SMALL
from torch import Tensor, nn

import gammacaps
from gammacaps.attacks import pgd, vote_surrogate
from gammacaps.auditing.audit import audit
from gammacaps.auditing.config import AuditConfig
from gammacaps.data import DataSet
from gammacaps.errors import InputError
from gammacaps.evaluation.checks.planted import features_of
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import evaluate
from gammacaps.evaluation.robustness import robustness
from gammacaps.explain.ablation import without
from gammacaps.explain.activate import activate
from gammacaps.explain.maps import activation_map
from gammacaps.explain.none_of_the_above import none_of_the_above
from gammacaps.explain.parsing import parse_tree, routing_trees
from gammacaps.explain.reconstruct import reconstruct
from gammacaps.models import CapsuleModel, Parse, export, has_capsules, has_kernels, save, shows_capsules
from gammacaps.ops import length, route, rule_named, squash

CONFIG = EvaluateConfig(attacks=("fgsm", "pgd", "vote"), eps=(0.1,), attack_steps=2, checks=False, device="cpu")
ROUTINGS = {"sda": rule_named("sda").title, "rba": rule_named("rba").title, "em": "expectation maximisation"}


class Mine(CapsuleModel):
    """A capsule network as a user writes it: one hidden layer, routed by `gammacaps.ops.route`, no layer of ours."""

    image_shape, classes, layers = (1, 12, 12), 3, ("primary", "hidden", "class")
    times = 2  # that it routes

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 2 * 4, 4, stride=4)
        self.below = nn.Parameter(torch.randn(18, 5, 4, 4))
        self.above = nn.Parameter(torch.randn(5, 3, 4, 6))

    def parse(self, images: Tensor, *, couplings: bool = True) -> Parse:
        primary = squash(self.patches(images).permute(0, 2, 3, 1).flatten(1).unflatten(1, (18, 4)))
        how = {"iterations": self.times, "couplings": couplings}
        hidden = route(primary, self.below, **how)
        top = route(hidden.poses, self.above, **how)
        poses = (primary, hidden.poses, top.poses)
        activations = tuple(length(p) for p in poses)
        return Parse(self.layers, poses, activations, (hidden.couplings, top.couplings), (None, None), activations[-1])

    @property
    def grids(self) -> tuple[tuple[int, int], ...]:
        return ((3, 3), (1, 1), (1, 1))

    def mean_votes(self) -> "Mine":
        other = copy.copy(self)  # on the same weights
        other.times = 1
        return other


@pytest.fixture
def mine() -> Mine:
    torch.manual_seed(0)
    return Mine().eval()


@pytest.fixture
def data() -> DataSet:
    images = torch.rand(12, 1, 12, 12, generator=torch.Generator().manual_seed(1))
    return DataSet(images, torch.arange(3).repeat(4), ("a", "b", "c"), "made", "here")


@pytest.mark.slow
def test_a_user_s_capsule_network_is_attacked(mine, data):
    attacked = pgd(mine, data.images, data.labels, eps=0.1, steps=2)
    assert (attacked - data.images).abs().max() <= 0.1 + 1e-6
    assert (vote_surrogate(mine).times, mine.times) == (1, 2)
    couplings = vote_surrogate(mine).parse(data.images).couplings[0]
    torch.testing.assert_close(couplings, torch.full_like(couplings, 1 / 5))
    figures = robustness(mine, data.images, data.labels, CONFIG)
    assert [row["attack"] for row in figures["attacks"]] == ["fgsm", "pgd", "vote"]
    assert figures["skipped"] == []
    assert features_of(mine, data.images)(data.images).shape == (12, 5 * 4 + 3 * 6)  # poses, and no linear layer


def test_the_vote_attack_is_left_out_where_a_network_has_no_mean_votes(data):
    class Silent(Mine):
        mean_votes = CapsuleModel.mean_votes

    figures = robustness(Silent().eval(), data.images, data.labels, CONFIG)
    assert [row["attack"] for row in figures["attacks"]] == ["fgsm", "pgd"]
    assert figures["skipped"] == ["vote was left out: the network's class does not define mean_votes()."]


@pytest.mark.slow
def test_a_user_s_capsule_network_has_figures_and_an_audit(mine, data):
    results = evaluate(mine, data, CONFIG)
    assert list(results["T"]["layers"]) == ["hidden", "class"]
    assert 0 <= results["T"]["mean"] <= 1
    assert list(results["D"]["layers"]) == ["hidden"]
    assert results["D"]["mean"] > 0
    (layer,) = audit(mine, data, AuditConfig(device="cpu", eps=(0.05,), attack_steps=2))["layers"]
    assert layer["layer"] == "hidden"
    assert layer["of"] == 5


def test_a_user_s_capsule_network_is_explained(mine, data):
    assert mine.counts() == (18, 5, 3)
    made = activate(mine, "hidden", 4, starts=2, steps=3, best=1)
    assert made.image.shape == (1, 12, 12)
    tree = parse_tree(mine, data.images[0], class_names=data.class_names)
    assert [(layer.name, layer.grid, layer.types) for layer in tree.layers] == [
        ("primary", (3, 3), 2),
        ("hidden", (1, 1), 5),
        ("class", (1, 1), 3),
    ]
    shown = activation_map(mine, data.images, data.labels, "primary", by_type=True, count=3)
    assert shown.shuffled.shape == (3, 2)
    scores = none_of_the_above(mine, count=5).scores
    assert scores.min() >= 0


def test_what_a_user_s_network_does_not_say_is_told(mine, data, tmp_path):
    assert len(routing_trees(mine, data.images[0])) == 1  # of a network that names no iterations
    mine.routing, mine.iterations = "mine", 2
    assert mine.routing_title == "a rule of its own"
    with pytest.raises(InputError, match=r"A Mine does not say its couplings after .*: define couplings_after\("):
        routing_trees(mine, data.images[0])
    with pytest.raises(InputError, match="A Mine does not say which modules make its capsules: define the property"):
        without(mine, [(1, 0)])
    with pytest.raises(InputError, match="A Mine has no decoder"):
        reconstruct(mine, data.images)
    with pytest.raises(InputError, match=r"A Mine is none of the networks that config.json can describe \(gamma, "):
        save(mine, tmp_path / "mine")
    mine.depends_on_neighbours = True
    words = (
        "In this network an image's couplings depend on its neighbours: use a network that takes each image by itself"
    )
    with pytest.raises(InputError, match=words):
        parse_tree(mine, data.images[0])


@pytest.mark.slow
def test_a_user_s_network_is_exported(mine, data, tmp_path):
    export(mine, tmp_path / "mine.pt2")
    program = torch.export.load(tmp_path / "mine.pt2").module()
    torch.testing.assert_close(program(data.images), mine(data.images), atol=1e-5, rtol=1e-5)


def test_any_classifier_is_attacked(data):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(144, 3))
    assert not has_capsules(plain)
    assert (pgd(plain, data.images, data.labels, eps=0.1, steps=2) - data.images).abs().max() <= 0.1 + 1e-6
    figures = robustness(plain, data.images, data.labels, CONFIG)
    assert [row["attack"] for row in figures["attacks"]] == ["fgsm", "pgd"]
    assert figures["skipped"] == ["vote was left out: the network has no capsules, and so no votes."]


@pytest.mark.parametrize(
    ("preset", "changes", "capsules", "routing", "loss"),
    [
        ("paper", {**FORMER_SMALL, "routing": "rba"}, True, "rba", "margin"),
        ("small", {"decoder": ()}, True, "sda", "margin"),
        ("residual", {"primary_types": 2, "decoder": ()}, True, "sda", "margin"),
        ("matrix", {"filters": 4, "primary_types": 2, "types": (3, 2)}, True, "em", "spread"),
        ("cnn", {"filters": (2, 3), "width": 8}, False, None, "cross-entropy"),
    ],
)
def test_our_networks_answer(preset, changes, capsules, routing, loss):
    torch.manual_seed(0)
    model = gammacaps.create(preset, image_shape=(1, 20, 24), classes=4, **changes).eval()
    assert (model.image_shape, model.classes, model.routing, model.loss) == ((1, 20, 24), 4, routing, loss)
    assert model.routing_title == ROUTINGS.get(routing)
    assert has_capsules(model) is capsules
    assert shows_capsules(model) is capsules
    assert model.reconstructs is (preset == "paper")
    assert has_kernels(model) is (routing in ("sda", "rba"))
    images = torch.rand(2, 1, 20, 24)
    scores = model(images)
    shares = model.probabilities(scores)
    assert torch.equal(shares, scores) if capsules else torch.allclose(shares.sum(1), torch.ones(2))
    if capsules:
        counts = tuple(poses.shape[1] for poses in model.parse(images).poses)
        assert model.counts() == counts
        assert len(model.capsule_modules) == len(counts) == len(model.layers)
        types = {"paper": 12, "small": 8, "residual": 2, "matrix": 2}[preset]
        rows, columns = model.grids[0]
        assert rows * columns * types == counts[0]
        assert columns > rows
        assert model.mean_votes().iterations == 1
        assert model.iterations == 3
        assert model.config.iterations == 3
        last = model.couplings_after(3, model.parse(images))
        for again, given in zip(last, model.parse(images).couplings, strict=True):
            torch.testing.assert_close(again, given)


def test_kernels_do_not_pass_hooks_by():
    model = gammacaps.create("paper", **FORMER_SMALL)
    assert has_kernels(model)
    assert not has_kernels(without(model, [(1, 0)]))
    model.primary.register_forward_pre_hook(lambda *_: None)
    assert not has_kernels(model)


def test_what_depends_on_neighbours_is_not_shown():
    model = gammacaps.create("small", scale_over="batch")
    assert model.depends_on_neighbours
    assert has_capsules(model)
    assert not shows_capsules(model)


def test_no_part_but_models_and_layers_asks_for_a_class_of_network():
    source = Path(gammacaps.__file__).parent
    asked = re.compile(
        r"isinstance\([^)]*\b(GammaCapsNet|MatrixCapsNet|CNN|CapsuleModel|RoutedCapsules|MatrixCapsules)\b"
    )
    outside = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] not in ("models", "nn")]
    assert len(outside) > 100
    assert [path for path in outside if asked.search(path.read_text())] == []
