"""Figures of images that chose a run's weights are not made without a word."""

import dataclasses
import re

import pytest

import gammacaps
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import audit_run
from gammacaps.beyond.run import beyond_run
from gammacaps.data.named_sets import NAMED_SETS, SMALLNORB
from gammacaps.data.overlap import share_test_images, without_images_of
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.models import to_config
from gammacaps.models.folder import write_config, write_weights
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.headline import headline
from gammacaps.reporting.study import open_study
from gammacaps.runs.chosen_by import chosen_by
from gammacaps.runs.train_config import TrainConfig

OTHER_TOYS = "measure it with --data smallnorb-unseen."
OTHER_IMAGES = "measure it on other images with --data."


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("mnist", "mnist", True),
        ("mnist", "fashion-mnist", False),
        ("fashion-mini", "fashion-mnist", True),
        ("smallnorb", "smallnorb-choice", True),
        ("smallnorb-scaled", "smallnorb-choice", True),  # the same images in another scale
        ("smallnorb-unseen", "smallnorb-choice", False),
        ("smallnorb", "mnist", False),
        ("mine.npz", "./mine.npz", True),
        ("mine.npz", "yours.npz", False),
        ("mnist", "./mnist", False),  # a folder of the user's own
        ("package.module:images", "mnist", False),
    ],
)
def test_which_sets_have_test_images_in_common(one, other, shared):
    assert share_test_images(one, other) is shared
    assert share_test_images(other, one) is shared


def test_a_set_of_one_s_own_with_the_files_of_another_is_known(monkeypatch):
    own = dataclasses.replace(SMALLNORB, name="third-toy", toys=(2,), files_of="smallnorb")
    monkeypatch.setitem(NAMED_SETS, "third-toy", own)
    assert share_test_images("third-toy", "smallnorb-unseen")
    assert not share_test_images("third-toy", "smallnorb-choice")
    assert without_images_of("third-toy", "smallnorb-unseen") is None


@pytest.mark.parametrize(
    ("data", "chosen", "words"),
    [
        ("smallnorb", "smallnorb-choice", f"of smallnorb-choice, some of which smallnorb has too, .*: {OTHER_TOYS}"),
        ("smallnorb-choice", "smallnorb-choice", f"of smallnorb-choice, so that .*: {OTHER_IMAGES}"),
        ("smallnorb-scaled", "smallnorb-choice", OTHER_IMAGES),  # no part of it has this scale
        ("fashion-mnist", "fashion-mini", OTHER_IMAGES),
    ],
)
def test_it_is_said_in_a_sentence_that_names_other_images(data, chosen, words):
    config = TrainConfig(data="elsewhere.npz", validate=9, validate_on=chosen)
    said = chosen_by(config, data)
    assert re.search(words, said)
    assert "\n" not in said


def test_nothing_is_said_of_images_that_chose_nothing():
    config = TrainConfig(data="smallnorb", validate=9, validate_on="smallnorb-choice")
    assert chosen_by(config, "smallnorb-unseen") == ""
    assert chosen_by(TrainConfig(validate=9), "fashion-mini") == ""  # held back from training
    assert chosen_by(None, "fashion-mini") == ""


@pytest.fixture
def run(tmp_path):
    """A network that was never trained, whose weights fashion-mini is said to have chosen."""
    folder = tmp_path / "run"
    folder.mkdir()
    sizes = {"filters": 4, "primary_types": 2, "hidden": (3,), "decoder": ()}
    model = gammacaps.create("small", **sizes)
    train = dataclasses.asdict(TrainConfig(data="mine.npz", validate=9, validate_on="fashion-mini"))
    write_config(folder, {"model": to_config(model), "train": train})
    write_weights(folder, model.state_dict())
    return folder


@pytest.mark.slow
def test_evaluation_audit_and_page_say_it(run, capsys):
    said = f"The weights were chosen by test images of fashion-mini, so that .*: {OTHER_IMAGES}"
    where = {"data": "fashion-mini", "device": "cpu", "limit": 10}
    evaluate_run(run, EvaluateConfig(attacks=("fgsm",), eps=(0.1,), checks=False, **where), quiet=True)
    assert re.fullmatch(f"Note: {said}\n", capsys.readouterr().err)
    study = open_study(run, ReportConfig(data="fashion-mini", device="cpu"))
    assert re.fullmatch(said, headline(study)[-1][0])
    audit_run(run, AuditConfig(attack_steps=1, **where), quiet=True)
    assert re.fullmatch(f"Note: {said}\n", capsys.readouterr().err)
    audited = dataclasses.replace(open_study(run, ReportConfig(data="fashion-mini", device="cpu")), results=None)
    assert re.fullmatch(said, headline(audited)[-1][0])
    with pytest.raises(InputError):  # before anything that takes long
        beyond_run(run, EvaluateConfig(beyond=True, unseen=("nowhere",), **where), quiet=True)
    assert re.fullmatch(f"Note: {said}\n", capsys.readouterr().err)
