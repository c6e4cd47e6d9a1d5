"""The whole of `evaluate --beyond`: figures by hand, kept and gone on from, for colour and two classes, on the page."""

import json
import time

import pytest
import torch

import gammacaps
from gammacaps.beyond import measure as measuring
from gammacaps.beyond.kept import KeptParts
from gammacaps.beyond.measure import calibrated, corrupted, in_norms, over_the_angle, placed_worst, subject, unseen
from gammacaps.beyond.table import table
from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.prediction_store import PredictionStore
from gammacaps.models import Model
from gammacaps.names import SHIPPED
from gammacaps.reporting.sections.beyond import draw, shown_beyond
from gammacaps.runs.run import Run
from gammacaps.shipping.card import card


class TopOrBottom(Model):
    """Colour images of two classes: whether the upper or the lower half is brighter."""

    image_shape, classes = (3, 32, 32), 2

    def __init__(self):
        super().__init__()
        self.zero = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        halves = images.mean(dim=(1, 3)).unflatten(1, (2, -1)).mean(2)
        return 10 * halves + self.zero


def bars(count=6):
    """A white bar near the top or near the bottom."""
    images, labels = torch.zeros(count, 3, 32, 32), torch.arange(count) % 2
    for image, label in zip(images, labels.tolist(), strict=True):
        image[:, (24 if label else 4) : (28 if label else 8), 8:24] = 1
    return images, labels


@pytest.mark.slow
def test_what_is_known_of_bars_in_colour_with_two_classes(tmp_path):
    images, labels = bars()
    of = subject(TopOrBottom(), images, labels, EvaluateConfig(batch=4))
    parts = KeptParts(tmp_path, weights="w", data="d")
    assert of.correct.all()
    # Neither 30 degrees nor 3 pixels take a bar into the other half.
    spatial = placed_worst(of, parts)
    assert (spatial["accuracy"], spatial["images"], spatial["complete"]) == (1.0, 6, True)
    assert spatial["grid"]["shift"] == 3
    turned = over_the_angle(of, parts)
    assert [row["angle"] for row in turned] == list(range(0, 91, 10))
    assert {row["left"]["accuracy"] for row in turned[:7]} == {1.0}
    kinds = {row["kind"]: row["accuracy"] for row in corrupted(of, parts)["kinds"]}
    assert len(kinds) == 15
    assert kinds["translate"] == kinds["scale"] == kinds["rotate"] == 1.0
    (row,) = in_norms(of, {"linf": 0.01}, PredictionStore(), float("inf"))
    assert row["accuracy"] == 1.0
    # A bar lights 4 x 16 of 16 x 32 pixels: to make both halves alike takes a change of 1/8 between their means.
    (row,) = in_norms(of, {"linf": 0.2}, PredictionStore(), float("inf"))
    assert row["accuracy"] == 0.0
    rows = unseen(of, (), None, parts, eps=0.1, data_dir=None)
    assert [row["source"] for row in rows] == ["noise", "blank"]
    # Of a blank image both halves are alike, and of no bar.
    assert rows[1]["length"]["auroc"] == 1.0
    assert rows[1]["length"]["false_alarms"] == 0.0
    calibration = calibrated(of)
    sure = (torch.tensor(1.25).exp() / (1 + torch.tensor(1.25).exp())).item()  # 10/8 above the other
    assert calibration["error"] == pytest.approx(1 - sure, abs=1e-5)
    assert calibration["answered"][-1] == {"share": 1.0, "accuracy": 1.0}


def test_a_part_is_measured_once_for_its_network_and_settings(tmp_path):
    asked = []

    def find():
        asked.append(1)
        return {"number": len(asked)}

    one = KeptParts(tmp_path / "kept", weights="a", data="d", about={"seed": 0})
    assert one.get("fog", {"batch": 2}, find) == {"number": 1}
    assert KeptParts(tmp_path / "kept", weights="a", data="d", about={"seed": 0}).get("fog", {"batch": 2}, find) == {
        "number": 1
    }
    assert one.get("fog", {"batch": 3}, find) == {"number": 2}
    assert KeptParts(tmp_path / "kept", weights="b", data="d", about={"seed": 0}).get("fog", {"batch": 2}, find) == {
        "number": 3
    }
    late = KeptParts(tmp_path / "kept", weights="b", data="d", deadline=time.monotonic() - 1)
    assert late.get("spatter", {}, find) is None
    assert not late.complete
    (path,) = (p for p in (tmp_path / "kept").iterdir() if json.loads(p.read_text())["kept"]["weights"] == "b")
    path.write_text(path.read_text().replace('"number": 3', '"number": 9'))
    with pytest.raises(InputError, match="is broken: delete it"):
        KeptParts(tmp_path / "kept", weights="b", data="d", about={"seed": 0}).get("fog", {"batch": 2}, find)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The shipped fashion-mini on a few images, in a folder of its own."""
    folder = tmp_path_factory.mktemp("beyond")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(measuring, "Grid", lambda shift: gammacaps.attacks.Grid(shift=shift, turns=3, shifts=1, zooms=1))
        patch.setattr("gammacaps.beyond.unseen.find", lambda name, where: None)
        figures = gammacaps.evaluate("fashion-mini", beyond=True, limit=10, quiet=True)
        again = gammacaps.evaluate("fashion-mini", beyond=True, limit=10, quiet=True)
    return folder / "runs" / "fashion-mini", figures, again


@pytest.mark.slow
def test_a_run_is_measured_and_the_second_time_nothing_is_measured_again(measured):
    folder, figures, again = measured
    volatile = ("seconds", "machine")
    assert {k: v for k, v in again.items() if k not in volatile} == {
        k: v for k, v in figures.items() if k not in volatile
    }
    assert again["seconds"] < figures["seconds"] / 2
    assert (folder / "beyond.png").stat().st_size > 10_000
    stored = Run(folder).beyond()
    assert stored == json.loads(json.dumps(again))
    assert [row["norm"] for row in stored["norms"]] == ["linf", "l2", "l1"]
    assert [row["eps"] for row in stored["norms"]] == [Run(folder).radius, 1.5, 7.5]
    assert {row["source"] for row in stored["unseen"]} == {"noise", "blank"}
    assert any("mnist was not shown" in note for note in stored["notes"])
    assert stored["complete"]
    words = table(stored)
    assert "L2, eps 1.5" in words
    assert "canny edges" in words


@pytest.mark.slow
def test_the_report_shows_it_and_a_broken_file_is_one_sentence(measured, tmp_path):
    folder, figures, _ = measured
    page = draw(shown_beyond(json.loads(json.dumps(figures)), ("An earlier state.",)))
    assert "Worst of 3 turns, shifts, scalings" in page
    assert "Canny edges" in page
    assert "An earlier state." in page
    broken = dict(figures, clean={"accuracy": 2})
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "beyond.json").write_text(json.dumps(broken))
    with pytest.raises(InputError, match="make it again with gammacaps evaluate --beyond"):
        Run(tmp_path).beyond()


@pytest.mark.slow
def test_the_card_shows_what_is_of_its_very_weights(measured, tmp_path):
    folder, figures, _ = measured
    run = tmp_path / "run"
    run.mkdir()
    for file in (folder / "config.json", folder / "model.safetensors", SHIPPED / "fashion-mini" / "results.json"):
        (run / file.name).write_bytes(file.read_bytes())
    assert "Other changes of the images" not in (card(run, "plain", shipped=tmp_path) / "README.md").read_text()
    (run / "beyond.json").write_bytes((folder / "beyond.json").read_bytes())
    carded = card(run, "told", shipped=tmp_path)
    text = (carded / "README.md").read_text()
    l2 = next(row for row in figures["norms"] if row["norm"] == "l2")
    assert f"| L2, eps 1.5 | {100 * l2['accuracy']:.1f} (" in text
    assert f"| bad pictures, mean of 15 | {100 * figures['corruptions']['mean']:.1f} |" in text
    assert "on 10 test images" in text
    assert str(folder) not in (carded / "beyond.json").read_text()
    (run / "beyond.json").write_text(json.dumps({**figures, "weights": "other"}))
    with pytest.raises(InputError, match=r"beyond\.json is not of the weights beside it: .* evaluate --beyond"):
        card(run, "told", shipped=tmp_path)


@pytest.mark.slow
def test_out_of_time_it_stops_with_what_it_has(measured, monkeypatch):
    folder, _, _ = measured
    monkeypatch.chdir(folder.parents[1])
    monkeypatch.setattr("gammacaps.beyond.unseen.find", lambda name, where: None)
    figures = gammacaps.evaluate(folder, beyond=True, limit=12, minutes=1e-9, quiet=True)
    assert not figures["complete"]
    assert figures["spatial"]["accuracy"] is None
    assert figures["corruptions"] == {"mean": None, "kinds": []}
    assert Run(folder).beyond() is not None
    assert "the same command goes on from here" in table(figures)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attacks": ("fgsm",)}, "leave attacks out"),
        ({"norm": "l2"}, "leave norm out"),
        ({"eps": (0.1, 0.2)}, "takes one eps"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(options, words):
    with pytest.raises(InputError, match=words):
        EvaluateConfig(beyond=True, **options)


def test_unseen_without_beyond_is_one_sentence(capsys):
    with pytest.raises(InputError, match="unseen is for --beyond"):
        EvaluateConfig(unseen=("mnist",))
    images, labels = torch.rand(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InputError, match="check takes no beyond"):
        gammacaps.check(torch.nn.Flatten(), images, labels, beyond=True)
    with pytest.raises(SystemExit) as end:
        main(["evaluate", "fashion-mini", "--beyond", "--norm", "l2"])
    assert end.value.code == 2
    assert "--beyond has its own attacks and norms: leave norm out." in capsys.readouterr().err
