"""smallNORB in deviations from end to end, tiny: trained, stopped, resumed, attacked, measured and stored so."""

import dataclasses

import pytest
import torch

import gammacaps
from gammacaps.data import DataSet
from gammacaps.data.scaled import SPAN, scaled
from gammacaps.models import load
from gammacaps.paper import measure, run
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.plan import SCALED, _planned
from gammacaps.paper.record import path_of, read_record
from gammacaps.paper.trainings import Plateau
from gammacaps.training import loop

TINY = {
    "sda": ("filters=4", "primary_types=1", "hidden=[3]", "decoder=[8]"),
    "rba": ("filters=4", "primary_types=1", "hidden=[3]", "decoder=[8]"),
    "em": ("filters=4", "primary_types=2", "types=[2, 2]"),
}


@pytest.fixture
def options(tmp_path, monkeypatch):
    """As in the cut-down version, on some made-up pale images in place of smallNORB's files."""
    torch.manual_seed(0)
    labels = torch.arange(60) % 5
    shapes = torch.zeros(5, 1, 28, 28)
    for k in range(5):
        shapes[k, 0, 4 * k + 2 : 4 * k + 8, 6:20] = 0.15
    pixels = (0.7 - shapes[labels] + 0.02 * torch.randn(60, 1, 28, 28)).clamp(0, 1)
    made = DataSet(scaled(pixels), labels, ("animal", "human", "airplane", "truck", "car"), SCALED, "made up")
    for place in (
        "gammacaps.training.data.open_set",
        "gammacaps.runs.run.open_set",
        "gammacaps.paper.measure.load_set",
    ):
        monkeypatch.setattr(place, lambda *_, **__: made)
    monkeypatch.setattr(measure, "QUICK_SUITE", ("noise", "pgd-ce"))
    monkeypatch.setattr(measure, "MAP_IMAGES", 20)
    places = {"results": tmp_path / "reproduction", "work": tmp_path / "runs"}
    return ReproduceConfig(quick=True, evaluate_images=20, steps=6, device="cpu", **places)


def tiny(options, rule, kind):
    whole = _planned(options, SCALED, rule, kind, 0, None)
    config = dataclasses.replace(
        whole.config, model=(*TINY[rule], f"input_scale={SPAN}"), attack_steps=2, log_every=1, batch=16
    )
    return dataclasses.replace(whole, config=config)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["sda", "rba", "em"])
def test_a_network_is_made_in_deviations(options, rule, monkeypatch):
    planned, seen = tiny(options, rule, "robust"), []
    folder = options.work_folder / planned.name
    run.train(planned.config, folder, until=3)  # stopped half way, as by a machine that went
    kept = loop.take_step

    def watched(*args, **keywords):
        result = kept(*args, **keywords)
        seen.append((args[2], result[2]))
        return result

    monkeypatch.setattr(loop, "take_step", watched)
    run.make(planned, options)
    assert len(seen) == 3  # it went on from where it stopped
    clean, attacked = seen[-1]
    far = (attacked - clean).abs().amax(dim=(1, 2, 3)) * SPAN
    assert (far <= 0.3 + 1e-4).all()
    assert (far > 0.1).all()  # in deviations: in pixels another for each image

    record = read_record(path_of(options.results_folder, planned.name))
    assert [row["eps"] * SPAN for row in record.figures["results"]["attacks"]] == pytest.approx(
        [0.1, 0.1, 0.3, 0.3, 0.5, 0.5]
    )
    steps = {row["step"] for row in record.figures["results"]["attacks"] if row["attack"] == "pgd"}
    assert steps == {0.01 / SPAN}
    model = load(folder)
    assert model.config.input_scale == SPAN
    images = torch.rand(3, 1, 28, 28)
    same = gammacaps.create(planned.config.preset, **{**vars(model.config), "input_scale": 1})
    same.load_state_dict(model.state_dict())
    torch.testing.assert_close(same.eval()((images - 0.5) * SPAN), model(images))
    for attack, eps in (("clean", None), ("pgd", 0.3 / SPAN), ("worst", 0.3 / SPAN)):
        row = record.figures["results"]["clean"] if eps is None else record.accuracy(attack, eps) or record.worst(eps)
        row = record.worst(eps) if attack == "worst" else row
        assert record.bits(attack, eps).right.sum() == row["correct"]
        assert len(record.bits(attack, eps).right) == row["images"] == 20
    assert run.finished(planned, options)


@pytest.mark.slow
def test_a_clean_training_ends_by_held_back_images(options, monkeypatch):
    """Leg by leg, resumed each time; never by test images."""
    whole = tiny(options, "sda", "standard")
    config = dataclasses.replace(whole.config, steps=40, validate=10, validate_every=2)
    plateau = Plateau(least=6, patience=4, most=40)
    planned = dataclasses.replace(whole, config=config, moments=(40,), plateau=plateau)
    monkeypatch.setattr(run, "LEG", 2)
    run.make(planned, options)
    record = read_record(path_of(options.results_folder, planned.name))
    rows = run.read_metrics(options.work_folder / planned.name)
    by_step = {row["step"]: row["validation"] for row in rows if "validation" in row}
    best = max(by_step.values())
    first_best = min(step for step, right in by_step.items() if right == best)
    assert record.steps == max(6, first_best + 4) or record.steps == 40
    assert record.steps < 40
    assert record.figures["total"] == 40
    assert run.finished(planned, options)
