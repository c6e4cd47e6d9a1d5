import math

import pytest

from gammacaps.errors import InputError
from gammacaps.runs.train_config import TrainConfig, config_from, model_changes, read_config_file
from gammacaps.training.schedule import learning_rate, radius


def test_lengths_of_training():
    assert TrainConfig(steps=7).total_steps(1000) == 7
    assert TrainConfig(epochs=2, batch=100).total_steps(1050) == 20
    assert TrainConfig(epochs=2, steps=5, batch=100).total_steps(1050) == 5
    assert TrainConfig(minutes=1).total_steps(1000) is None
    assert TrainConfig(batch=100).total_steps(1000) == 200  # 20 epochs where nothing is said
    assert TrainConfig(epochs=1, batch=100).total_steps(30) == 1


def test_schedules():
    cosine = TrainConfig(lr=0.1)
    assert [learning_rate(cosine, 0, p) for p in (0, 0.5, 1)] == pytest.approx([0.1, 0.05, 0])
    assert learning_rate(TrainConfig(lr=0.1, schedule="constant"), 9, 0.9) == 0.1
    assert learning_rate(TrainConfig(lr=0.1, schedule="decay"), 40_000, 0.9) == pytest.approx(0.1 * 0.96**2)
    ramp = TrainConfig(eps=0.3, eps_ramp=0.5)
    assert [radius(ramp, p) for p in (0, 0.25, 0.5, 1)] == pytest.approx([0, 0.15, 0.3, 0.3])
    assert radius(TrainConfig(eps=0.3, eps_ramp=0), 0) == 0.3


def test_changes_to_the_preset():
    changes = model_changes(TrainConfig(model=("hidden=[64]", "iterations=2", "routing=rba", "routing_bias=false")))
    assert changes == {"hidden": [64], "iterations": 2, "routing": "rba", "routing_bias": False}


def test_config_files(tmp_path):
    (tmp_path / "a.toml").write_text('data = "mnist"\neps = 1\nmodel = ["hidden=[4]"]\n')
    assert read_config_file(tmp_path / "a.toml") == TrainConfig(data="mnist", eps=1, model=("hidden=[4]",))
    (tmp_path / "b.json").write_text('{"train": {"steps": 5, "robust": false}}')
    assert read_config_file(tmp_path / "b.json") == TrainConfig(steps=5, robust=False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epsilon": 0.1}, "no option of training 'epsilon' .did you mean 'eps"),
        ({"eps": "big"}, "eps must be a number, not 'big'"),
        ({"eps": -1}, "eps must be 0 or more, not -1"),
        ({"eps": math.nan}, "eps must be a number, not nan"),
        ({"eps": 1.5}, "eps must be at most 1, the range of a pixel, not 1.5"),
        ({"loss": "ce"}, "loss must be one of own, ce-log, not 'ce'"),
        (
            {"preset": "cnn", "loss": "ce-log"},
            "loss ce-log is for capsules; a cnn learns from cross-entropy anyway: leave it out",
        ),
        ({"preset": "cnn", "routing": "rba"}, "routing rba is for the presets paper, small, deep, residual, not cnn"),
        ({"robust": 1}, "robust must be true or false, not 1"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": 1.5}, "steps must be a whole number, not 1.5"),
        ({"preset": "tiny"}, "preset must be one of paper, small, deep, residual, matrix, cnn, not 'tiny'"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"lr": 0}, "lr must be more than 0"),
        ({"ema": 1}, "ema must be from 0 to less than 1"),
        ({"eps_ramp": 2}, "eps_ramp must be from 0 to 1"),
        ({"weight_decay": -1}, "weight_decay must be 0 or more, not -1"),
        ({"smoothing": 1}, "smoothing must be from 0 to less than 1, not 1"),
        ({"weight_perturbation": 2}, "weight_perturbation must be at most 1, not 2"),
        ({"validate": -1}, "validate must be 0 or more, not -1"),
        ({"validate_every": 0}, "validate_every must be at least 1, not 0"),
        ({"turn": 181}, "turn must be at most 180, not 181"),
        ({"turn": -1}, "turn must be 0 or more, not -1"),
        ({"zoom": 1}, "zoom must be from 0 to less than 1, not 1"),
        ({"brightness": 1.5}, "brightness must be at most 1, not 1.5"),
        ({"contrast": -0.1}, "contrast must be 0 or more, not -0.1"),
        ({"model": ["hidden"]}, "is written NAME=VALUE"),
        ([1, 2], "table of names and values"),
    ],
)
def test_a_wrong_configuration_gets_one_sentence(values, words):
    with pytest.raises(InputError, match=words):
        config_from(values)


def test_an_attack_that_falls_short_of_its_radius_is_told():
    short = TrainConfig(eps=0.3, attack_steps=2, attack_step=0.01)
    assert short.falls_short().startswith("2 attack steps of 0.01 reach 0.02, less than eps 0.3: give more")
    far = ({}, {"attack_steps": 30}, {"attack_steps": 1}, {"attack_steps": 2, "robust": False})
    assert not any(TrainConfig(eps=0.3, **changes).falls_short() for changes in far)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "is not valid json"),
        ("a.toml", "= 3", "is not valid toml"),
        ("a.json", '{"epsilon": 1}', "a.json: There is no option"),
        ("missing.json", None, "can't be read"),
    ],
)
def test_a_broken_config_file_gets_one_sentence(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=words):
        read_config_file(tmp_path / name)
