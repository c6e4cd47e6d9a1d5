"""A network made from a recipe, stage by stage; the same command repeats nothing and mixes no two recipes."""

import shutil
import sys
from pathlib import Path

import pytest

from gammacaps.errors import InputError
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import read_config_file
from gammacaps.shipping import make as making
from gammacaps.shipping.command import main
from gammacaps.shipping.make import MakeConfig, make

RECIPE = """
data = "fashion-mini"
model = ["filters=8", "primary_types=2", "hidden=[6]", "decoder=[16]"]
eps = 0.1
attack_steps = 1
steps = {steps}
batch = 16
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE.format(steps=2))
    return path


@pytest.fixture
def quick(monkeypatch):
    """The suite cut down to one attack, inputs to a few steps: which attacks are strong is tested elsewhere."""
    whole, looking = making.EvaluateConfig, making.ReportConfig

    def cut(**options):
        return whole(**options) if "beyond" in options else whole(**{**options, "attacks": ("fgsm",), "checks": False})

    monkeypatch.setattr(making, "EvaluateConfig", cut)
    monkeypatch.setattr(making, "ReportConfig", lambda **options: looking(starts=2, steps=2, **options))


@pytest.mark.slow
def test_a_recipe_becomes_a_shipped_network(recipe, quick, tmp_path, monkeypatch):
    config = MakeConfig(runs=tmp_path / "runs", images=20, audited=10, beyond=10, device="cpu")
    folder = make(recipe, "tiny", config, shipped=tmp_path / "weights")
    assert folder == tmp_path / "weights" / "tiny"
    shipped = Run(folder)
    assert shipped.config.precision == "float16"
    assert shipped.audit()["settings"]["strong"]
    assert shipped.beyond()["data"]["images"] == 10
    assert shipped.results()["data"]["images"] == 20
    assert {layer: len(kept.capsules) for layer, kept in shipped.inputs().items()} == {"hidden 1": 6, "class": 10}
    assert "2 steps of 16 images" in (folder / "README.md").read_text()
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*.safetensors")}
    monkeypatch.setattr(making, "audit_run", None)  # would fail if it were called again
    make(recipe, "tiny", config, shipped=tmp_path / "weights")
    after = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*.safetensors")}
    assert before == after


@pytest.mark.slow
def test_a_run_of_another_recipe_is_not_taken(recipe, tmp_path):
    config = MakeConfig(runs=tmp_path / "runs", until="train", device="cpu")
    assert make(recipe, "tiny", config) == tmp_path / "runs" / "tiny"
    halving = MakeConfig(runs=tmp_path / "runs", until="halve", device="cpu")
    make(recipe, "tiny", halving)
    recipe.write_text(RECIPE.format(steps=3))
    with pytest.raises(InputError, match=r"trained by other options than .*tiny\.toml has: move it away"):
        make(recipe, "tiny", config)
    shutil.rmtree(tmp_path / "runs" / "tiny")  # but not what was made of it
    with pytest.raises(InputError, match=r"tiny-halved was not made of .*tiny for these data: move it away"):
        make(recipe, "tiny", halving)


def test_an_unknown_stage_is_named(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["shipping", "make", str(recipe), "tiny", "--until", "bake"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "bake" in capsys.readouterr().err


def test_the_recipes_of_the_repository_can_be_read():
    recipes = sorted((Path(__file__).parents[2] / "docs" / "training" / "recipes").glob("*.toml"))
    assert recipes
    for path in recipes:
        config = read_config_file(path)
        assert config.steps, path
        assert config.minutes is None, path  # which would not repeat
        assert config.gamma_weight() > 0, path
        assert not config.falls_short(), path
