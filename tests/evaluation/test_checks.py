"""Each check, on a network that deserves it, and on one trained under attack that does not."""

import dataclasses
import math
import re
import sys

import pytest
import torch
from former_small import CONVOLUTION
from torch import nn

import gammacaps
from gammacaps.attacks import pgd
from gammacaps.data import load_set
from gammacaps.evaluation.checks import all_checks, probed_radius, verdict
from gammacaps.evaluation.checks.compare import compare
from gammacaps.evaluation.checks.finding import Finding
from gammacaps.evaluation.checks.planted import features_of, plant, planted
from gammacaps.evaluation.checks.probe import asked_again, bound, gradients, learned, longer, neighbours, repeats
from gammacaps.evaluation.class_turns import in_turns
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.measure import Measured
from gammacaps.evaluation.robustness import robustness
from gammacaps.evaluation.specs import Spec
from gammacaps.training.losses import margin_loss

EPS = 0.1


@pytest.fixture(scope="module")
def trained():
    """A gamma-capsule network trained under single-step attack for a few seconds."""
    torch.manual_seed(0)
    model = gammacaps.create("small", **CONVOLUTION, filters=12, primary_types=3, hidden=(8,), decoder=())
    images, labels = gammacaps.load_data("fashion-mini", "train")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(90):
        part = torch.arange(step * 32, step * 32 + 32) % len(images)
        eps = EPS * min(1, step / 45)
        attacked = pgd(model, images[part], labels[part], eps=eps, step=1.25 * eps, steps=1)
        optimizer.zero_grad()
        margin_loss(model(attacked), labels[part]).backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def test_images():
    return balanced(load_set("fashion-mini"), 40)


class Saturated(nn.Module):
    """Scores so steep that float32 rounds their gradient to nothing."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return (1e4 * (self.model(images) - 0.5)).sigmoid()


class Rounded(nn.Module):
    """Rounds the image to eight greys first, which has no gradient."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model((images * 8).round() / 8)


class Jumpy(nn.Module):
    """Hands the gradient on through a random map, so that it leads nowhere."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.map = torch.randn(784, 784, generator=torch.Generator().manual_seed(0)) / 28

    def forward(self, images):
        wrong = (images.flatten(1) @ self.map).view_as(images)
        return self.model(images.detach() + wrong - wrong.detach())


class Random(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model((images + 0.1 * torch.randn_like(images)).clamp(0, 1))


def checks_of(model, images, labels, attacks=("standard",)):
    """By name, at the radius of training."""
    results = robustness(model, images, labels, EvaluateConfig(attacks=attacks, eps=(EPS,)))
    return {check["check"]: check for check in results["checks"]}, results


@pytest.mark.slow
def test_a_network_trained_under_attack_is_not_flagged(trained, test_images):
    checks, results = checks_of(trained, *test_images)
    doubted = [f"{c['verdict']}: {c['meaning']}" for c in checks.values() if c["verdict"] != "pass"]
    assert len(doubted) <= 1, doubted  # of so few images one more or less can be a warning
    assert results["verdict"] != "fail", doubted
    assert results["worst"][0]["accuracy"] > 0.25
    assert all(c["meaning"].endswith(".") for c in checks.values())


def test_saturated_scores_are_caught_by_their_zero_gradients(trained, test_images):
    checks = {c.check: c for c in gradients(Saturated(trained), *test_images, EPS, 0)}
    assert checks["gradient-margin"].verdict == "fail"
    assert checks["gradient-margin"].number > 0.1
    assert "are zero" in checks["gradient-margin"].meaning
    healthy = gradients(trained, *test_images, EPS, 0)
    assert {c.verdict for c in healthy} == {"pass"}


@pytest.mark.slow
def test_a_rounding_layer_is_caught(trained, test_images):
    checks, results = checks_of(Rounded(trained), *test_images, attacks=("noise", "fgsm", "pgd"))
    assert checks["gradient-margin"]["verdict"] == "fail"
    assert checks["attainable-at-0.5"]["verdict"] == "fail"
    assert results["verdict"] == "fail"


@pytest.mark.slow
def test_gradients_that_lead_nowhere_are_caught_by_the_bound(trained):
    # Of images that the network knows, as many of each class as there are: then far more stand than one class has.
    images, labels = balanced(load_set("fashion-mini"), 200)
    with torch.no_grad():
        known = (trained(images).argmax(1) == labels).nonzero().squeeze(1)
    known = known[in_turns(labels[known])[:60]]
    images, labels = images[known], labels[known]
    assert bound(Jumpy(trained), images, labels, 0).verdict == "fail"
    assert bound(trained, images, labels, 0).verdict == "pass"
    assert {c.verdict for c in gradients(Jumpy(trained), images, labels, EPS, 0)} == {"pass"}  # these are blind to it


def test_scale_over_the_batch_is_caught(trained, test_images):
    images, _ = test_images
    over_batch = gammacaps.create(
        "small", **CONVOLUTION, filters=12, primary_types=3, hidden=(8,), decoder=(), scale_over="batch"
    ).eval()
    over_batch.load_state_dict(trained.state_dict())
    assert neighbours(trained, images).verdict == "pass"
    check = neighbours(over_batch, images)
    assert check.verdict == "fail"
    assert "images beside it" in check.meaning
    assert "(by scale_over='batch'; use a network with scale_over='capsule')" in check.meaning

    # Scores without bounds are rounded by their size, and by that of the batch.
    def scaled(factor, by_batch):
        return lambda images: factor * trained(images) + by_batch * len(images)

    assert neighbours(scaled(50, 2e-3 / 40), images).verdict == "pass"
    others = neighbours(scaled(1, 2e-3 / 10), images)
    assert others.verdict == "fail"
    assert "scale_over" not in others.meaning  # which a network of one's own does not have


def test_random_answers_are_not_blamed_on_the_images_beside(trained, test_images):
    images, _ = test_images
    found = asked_again(lambda images: trained(images + 0.1 * torch.randn_like(images)), images)
    assert [(each.check, each.verdict) for each in found] == [("repeats", "fail"), ("neighbours", "skip")]
    assert found[1].meaning.endswith("could not be judged, since they change each time.")
    assert [each.verdict for each in asked_again(trained, images)] == ["pass", "pass"]


def test_guessing_is_told():
    labels = torch.arange(40) % 4
    assert learned(labels >= 0, labels).verdict == "pass"
    guessed = learned(labels == 1, labels)
    assert (guessed.verdict, guessed.number) == ("warn", 0.25)
    assert "always naming one class gives 25.0%" in guessed.meaning


def test_random_answers_are_caught(trained, test_images):
    assert repeats(trained, test_images[0]).verdict == "pass"
    check = repeats(Random(trained), test_images[0])
    assert check.verdict == "fail"
    assert check.number > 1e-3


def test_nan_and_missing_gradients_are_caught(test_images):
    class Root(nn.Module):
        def forward(self, images):
            zero = (images - images.detach()).flatten(1).sum(1, keepdim=True)
            return images.flatten(1)[:, :10] + zero.clamp(min=0).sqrt()

    class Detached(nn.Module):
        def forward(self, images):
            return images.detach().flatten(1)[:, :10]

    images = test_images[0].clone()
    labels = images.flatten(1)[:, :10].argmax(1)
    images[torch.arange(40), 0, 0, labels] = 1.0  # right even after the random start
    by_name = {c.check: c for c in gradients(Root(), images, labels, 0.01, 0)}
    assert by_name["gradient-ce"].verdict == "fail"
    assert "NaN or infinity" in by_name["gradient-ce"].meaning
    gone = gradients(Detached(), images, labels, 0.01, 0)
    assert {c.verdict for c in gone if c.check != "gradient-ce-log"} == {"fail"}
    assert "no gradient at all" in gone[0].meaning


@pytest.mark.slow
def test_a_network_that_gives_no_gradient_is_measured_and_flagged(trained, test_images):
    class Cut(nn.Module):
        def forward(self, images):
            return trained(images.detach())

    checks, results = checks_of(Cut(), *test_images, attacks=("noise", "fgsm", "pgd"))
    assert results["verdict"] == "fail"
    assert checks["gradient-margin"]["verdict"] == "fail"


def measured(attack, broken, eps=0.1, outside=0.0, **numbers):
    flags = torch.zeros(200, dtype=torch.bool)
    flags[broken] = True
    return Measured(Spec(attack, eps, **numbers), flags, torch.ones(200).bool(), outside, 0.0)


def verdicts(found, curve=()):
    return {c.check: (c.verdict, c.number) for c in compare(list(found), list(curve))}


def test_a_weaker_attack_that_finds_what_a_stronger_missed():
    pgd_found = measured("pgd", slice(0, 100), steps=40, step=0.01)
    assert verdicts([measured("fgsm", slice(0, 80)), pgd_found])["fgsm-beats-pgd"] == ("pass", 0)
    assert verdicts([measured("fgsm", slice(98, 102)), pgd_found])["fgsm-beats-pgd"] == ("pass", 0.01)
    assert verdicts([measured("fgsm", slice(98, 106)), pgd_found])["fgsm-beats-pgd"] == ("warn", 0.03)
    assert verdicts([measured("fgsm", slice(98, 120)), pgd_found])["fgsm-beats-pgd"] == ("fail", 0.1)
    for name, attack in (
        ("noise-beats-gradient", "noise"),
        ("black-box-beats-white-box", "square"),
        ("black-box-beats-white-box", "transfer"),
        ("surrogate-beats-white-box", "vote"),
    ):
        assert verdicts([measured(attack, slice(98, 120)), pgd_found])[name] == ("fail", 0.1)
        assert verdicts([measured(attack, slice(50, 100)), pgd_found])[name] == ("pass", 0)
    assert "black-box-beats-white-box" not in verdicts([pgd_found])  # nothing to compare with


def test_accuracy_that_rises_with_eps():
    near, far = measured("pgd", slice(0, 50), eps=0.1), measured("pgd", slice(0, 30), eps=0.3)
    assert verdicts([near, far])["falls-with-eps"] == ("fail", 0.1)
    other = measured("pgd", slice(20, 90), eps=0.3)  # more in all, but 20 of those before stand now
    assert verdicts([near, other])["falls-with-eps"] == ("fail", 0.1)
    same = [measured("pgd", slice(0, 50), eps=eps) for eps in (0.1, 0.2)]
    assert verdicts(same)["falls-with-eps"] == ("warn", 0)  # a larger ball breaks nothing more
    for attack in ("fgsm", "vote", "transfer"):  # a single step may well overshoot, and steps on another network
        blind = [measured(attack, slice(0, 50), eps=0.1), measured(attack, slice(0, 30), eps=0.3)]
        assert "falls-with-eps" not in verdicts(blind)
    curve = [measured("sweep", slice(0, 10 * n), eps=0.1 * n) for n in range(1, 4)]
    assert verdicts([near], curve)["falls-with-eps"][0] == "pass"


def test_steps_that_can_t_cross_the_ball():
    short = measured("pgd", slice(0, 5), eps=0.5, steps=40, step=0.01)
    verdict, number = verdicts([short])["steps-reach-eps"]
    assert verdict == "fail"
    assert number == pytest.approx(0.8)
    nothing_left = dataclasses.replace(short, stood=0)
    assert "steps-reach-eps" not in verdicts([nothing_left])  # it can't be lower
    long = measured("pgd-margin", slice(0, 5), eps=0.5, steps=100, step=0.05)
    assert verdicts([short, long])["steps-reach-eps"][0] == "warn"
    assert verdicts([long])["steps-reach-eps"][0] == "pass"


def test_attacked_images_outside_the_ball():
    assert verdicts([measured("pgd", slice(0, 5), outside=1e-7)])["inside-the-ball"][0] == "pass"
    assert verdicts([measured("pgd", slice(0, 5), outside=1e-3)])["inside-the-ball"] == ("fail", 1e-3)


@pytest.mark.slow
def test_an_attack_that_stopped_too_soon_is_caught(trained, test_images):
    images, labels = test_images
    with torch.no_grad():
        right = trained(images).argmax(1) == labels
    images, labels = images[right], labels[right]
    assert longer(trained, images, labels, 0.3, 0, len(images)).verdict == "fail"  # none was attacked before
    assert longer(trained, images, labels, 1e-6, 0, len(images)).verdict == "pass"
    assert longer(trained, images[:0], labels[:0], 0.1, 0, 10).verdict == "pass"


@pytest.mark.slow
def test_planted_examples_surely_exist_and_are_found(trained, test_images):
    images = test_images[0][:20]
    features = features_of(trained, images)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        direction, threshold, possible = plant(features, images, EPS, generator)
        assert possible.float().mean() > 0.9
        clean = (features(images) * direction).sum(1)
    assert (clean < threshold)[possible].all()  # the image itself does not pass
    assert planted(trained, images, EPS, 0).verdict == "pass"
    blind = planted(Blind(), images, EPS, 0)
    assert blind.verdict == "fail"
    assert blind.number < 0.5


@pytest.mark.slow
def test_apgd_may_find_what_pgd_missed(trained, test_images, monkeypatch):
    """Where the figures rest on it too; one by one, for each image has a last step of its own."""
    pytest.importorskip("pyautoattack")
    images = test_images[0][:6]
    module = sys.modules["gammacaps.evaluation.checks.planted"]  # which the package hides behind the function
    monkeypatch.setattr(module, "pgd", lambda _, images, *__, **___: images)
    assert planted(trained, images, EPS, 0).number == 0
    both = planted(trained, images, EPS, 0, apgd=True)
    assert both.verdict == "pass"
    assert re.search(r"PGD finds 0 of 6 and APGD-CE [56] of the others \(200 random points: ", both.meaning)
    blind = planted(Blind(), images, EPS, 0, apgd=True)
    assert blind.verdict == "fail"
    assert blind.meaning.endswith("they can't be trusted to find those of the network itself.")


class Blind(nn.Module):
    """A network with a linear last layer whose features round the image: planted examples can't be climbed to."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(784, 10)
        self.unused = nn.Linear(3, 3)

    def forward(self, images):
        return self.last((images * 16).round().flatten(1) / 16)


def test_a_network_without_features_is_skipped(test_images):
    class Bare(nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :10]

    check = planted(Bare(), test_images[0][:4], EPS, 0)
    assert check.verdict == "skip"
    assert check.number is None


@pytest.mark.slow
def test_the_worst_verdict_counts_and_all_numbers_are_numbers(trained, test_images):
    passed, warned, failed, skipped = (Finding("c", v, 0.0, "m") for v in ("pass", "warn", "fail", "skip"))
    assert verdict([passed, skipped]) == "pass"
    assert verdict([passed, warned]) == "warn"
    assert verdict([failed, warned]) == "fail"
    images, labels = test_images
    found = all_checks(trained, images[:4], labels[:4], torch.zeros(4).bool(), [], [])
    assert all(c.number is None or math.isfinite(c.number) for c in found)


@pytest.mark.slow
def test_probes_see_every_class_whatever_the_order(trained, monkeypatch):
    """A data set whose labels have a period, or that is sorted by class: every class is probed as often."""
    data = load_set("fashion-mini")
    probed, lengthened = [], []
    monkeypatch.setattr("gammacaps.evaluation.checks.gradients", lambda *args: probed.append(args[1:3]) or [])
    passed = Finding("c", "pass", 0.0, "")
    monkeypatch.setattr("gammacaps.evaluation.checks.longer", lambda *args: lengthened.append(args[2]) or passed)
    monkeypatch.setattr("gammacaps.evaluation.checks.planted", lambda *_, **__: passed)
    every = torch.ones(500).bool()
    found = [Measured(Spec("pgd", 0.1), ~every, every, 0.0, 0.0)]
    for labels in (torch.arange(500) % 10, torch.arange(500) // 50):
        all_checks(trained, data.images, labels, every, found, [])
        assert probed[-1][1].bincount().tolist() == [10] * 10
        assert lengthened[-1].bincount().tolist() == [10] * 10
    all_checks(trained, data.images, labels, every, found, [], seed=1)
    assert probed[-1][1].bincount().tolist() == [10] * 10
    assert not torch.equal(probed[-1][0], probed[-2][0])  # another seed, other images


def test_probes_are_at_the_largest_radius_at_which_a_tenth_stands():
    correct = torch.ones(40).bool()

    def stand(eps, count):
        return Measured(Spec("pgd", eps), torch.arange(40) >= count, correct, 0.0, 0.0)

    assert probed_radius(correct, []) == 0.1
    assert probed_radius(correct, [stand(0.03, 30), stand(0.1, 4), stand(0.3, 3)]) == 0.1
    assert probed_radius(correct, [stand(0.1, 4), Measured(Spec("fgsm", 0.1), correct, correct, 0.0, 0.0)]) == 0.1
    assert probed_radius(correct, [stand(0.03, 30), stand(0.1, 4), stand(0.1, 2)]) == 0.03
    assert probed_radius(correct, [stand(0.2, 0), stand(0.3, 0), stand(0.5, 40)]) == 0.2
    assert probed_radius(correct, [stand(0.5, 40)]) == 0.1
