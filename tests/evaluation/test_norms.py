"""An evaluation in L2 and L1: a linear network's true figures, files of their own, radii, sentences."""

import json
from pathlib import Path

import pytest
import torch

import gammacaps
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.radii import radii
from gammacaps.evaluation.robustness import robustness
from gammacaps.evaluation.specs import Spec
from gammacaps.evaluation.table import table, title
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig, config_from
from gammacaps.training.step import attack


class Linear(torch.nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.weight = torch.randn(classes, 25, generator=torch.Generator().manual_seed(0))

    def forward(self, images):
        return images.flatten(1) @ self.weight.T


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "dual", "eps"), [("l2", 2, 0.04), ("l1", torch.inf, 0.1)])
def test_the_worst_case_is_what_is_true_of_a_linear_network(norm, dual, eps):
    model = Linear()
    images = 0.4 + 0.2 * torch.rand(30, 1, 5, 5, generator=torch.Generator().manual_seed(1))
    labels = model(images).argmax(1)
    stands = 0
    for image, label in zip(images, labels.tolist(), strict=True):
        gaps = [model.weight[label] - w for n, w in enumerate(model.weight) if n != label]
        stands += all(float(image.flatten() @ gap) > eps * gap.norm(p=dual).item() for gap in gaps)
    config = EvaluateConfig(attacks=("pgd", "pgd-ce"), eps=(eps,), norm=norm, checks=False)
    figures = robustness(model, images, labels, config)
    assert 3 < stands < 27
    assert abs(figures["worst"][0]["correct"] - stands) <= 1
    assert {row["norm"] for row in figures["attacks"]} == {norm}
    assert figures["attacks"][0]["step"] == pytest.approx(eps / 10)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize(("classes", "shape"), [(2, (3, 8, 8)), (5, (1, 8, 8))])
def test_all_attacks_stay_in_the_ball_and_the_checks_hold(norm, classes, shape):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(shape[0] * 64, classes))
    images = 0.1 + 0.8 * torch.rand(20, *shape)
    labels = model(images).argmax(1)
    names = ("noise", "fgsm", "pgd", "apgd-ce", "fab-t", "square")
    config = EvaluateConfig(attacks=names, eps=({"l2": 0.3, "l1": 1.0}[norm],), norm=norm)
    figures = robustness(model, images, labels, config)
    checks = {check["check"]: check for check in figures["checks"]}
    assert checks["inside-the-ball"]["verdict"] == "pass"
    assert "attainable-at-0.5" not in checks
    assert checks["longer-attacks"]["verdict"] == "pass"


def test_what_knows_no_other_norm_is_left_out_with_a_sentence():
    images, labels = torch.rand(4, 1, 5, 5), torch.zeros(4, dtype=torch.int64)
    config = EvaluateConfig(attacks=("standard",), eps=(1.0,), norm="l2", checks=False)
    skipped = robustness(Linear(), images, labels, config)["skipped"]
    assert "grey was left out: it has no way to stay near an image in the norm L2." in skipped


@pytest.mark.slow
def test_figures_of_l2_have_a_file_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"attacks": "fgsm", "limit": 20, "checks": False, "quiet": True}
    results = gammacaps.evaluate("fashion-mini", norm="l2", **options)
    folder = Path("runs/fashion-mini-own")
    stored = json.loads((folder / "results-l2.json").read_text())
    assert stored["attacks"][0]["norm"] == "l2"
    assert stored["attacks"][0]["eps"] == 1.5
    assert "FGSM eps 1.5 (L2)" in table(results)
    gammacaps.evaluate("fashion-mini", norm="l1", **options)
    assert json.loads((folder / "results-l1.json").read_text())["attacks"][0]["eps"] == 7.5
    assert not (folder / "results.json").exists()  # which holds those of L-inf


def test_files_of_l_inf_keep_their_names_and_those_of_others_have_others():
    linf, l2 = Spec("pgd", 0.1, 40, 0.01, loss="margin"), Spec("pgd", 0.1, 40, 0.01, loss="margin", norm="l2")
    assert linf.key == "pgd-eps0.1-ccb79350"
    assert l2.key.startswith("pgd-l2-eps0.1-")
    assert Spec.from_row(l2.row()) == l2
    assert title(l2.row()) == "PGD-40 eps 0.1 (L2)"


def test_radii_are_usual_for_the_data_or_those_of_the_training():
    run = Run("fashion-mini")
    assert radii(EvaluateConfig(norm="l2"), run, "fashion-mini") == (1.5,)
    assert radii(EvaluateConfig(norm="l2"), run, "mnist") == (2.0,)
    assert radii(EvaluateConfig(norm="l1"), run, "photos") == (12.0,)
    assert radii(EvaluateConfig(norm="l2", eps=(0.7,)), run, "mnist") == (0.7,)
    assert radii(EvaluateConfig(), run, "fashion-mini") == (run.radius,)


def test_bad_norms_and_radii_are_one_sentence():
    with pytest.raises(InputError, match="norm must be one of linf, l2, l1, not 'l3'"):
        gammacaps.evaluate("fashion-mini", norm="l3")
    with pytest.raises(InputError, match="range of a pixel"):
        EvaluateConfig(eps=(2.0,))
    assert EvaluateConfig(eps=(2.0,), norm="l2").eps == (2.0,)
    with pytest.raises(InputError, match="at most 10,000"):
        EvaluateConfig(eps=(1e5,), norm="l2")
    with pytest.raises(InputError, match="norm must be one of linf, l2, not 'l1'"):
        config_from({"norm": "l1"})


def test_training_in_l2_attacks_in_l2():
    config = TrainConfig(norm="l2", eps=1.5, attack_step=0.3, attack_steps=5, eps_ramp=0)
    model, (images, labels) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    moved = attack(config, model, images[:10], labels[:10], 0, 1.0, None)
    far = (moved - images[:10]).flatten(1).norm(dim=1)
    assert far.max() <= 1.5 + 1e-4
    assert far.min() > 1.0
    assert (moved - images[:10]).abs().max() > 0.1
