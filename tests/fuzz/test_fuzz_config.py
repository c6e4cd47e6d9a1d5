"""Damaged configurations of a training: one that is sound, or one sentence."""

from pathlib import Path

import pytest
from fuzz.mutations import ODD_VALUES, answer, both_ways, cases, of_bytes, of_json

from gammacaps.runs.train_config import TrainConfig, read_config_file

CONFIG = {
    "data": "fashion-mini",
    "size": 28,
    "preset": "small",
    "routing": "rba",
    "model": ["hidden=[16]", "iterations=2"],
    "eps": 0.1,
    "attack_steps": 5,
    "attack_step": 0.03,
    "minutes": 2.5,
    "batch": 64,
    "seed": 3,
    "flip": True,
}


def config_is_sound(config: TrainConfig | None) -> bool:
    assert config is None or (config.batch >= 1 and 0 <= config.eps <= 1)
    return config is not None


@pytest.mark.slow
def test_configurations_in_json(tmp_path: Path) -> None:
    path, found = tmp_path / "config.json", []
    for chance in cases("json"):
        path.write_bytes(of_json(chance.choice((CONFIG, {"gammacaps": "1", "train": CONFIG})), chance))
        found.append(config_is_sound(answer(lambda: read_config_file(path))))
    both_ways(found)


def toml(values: dict[str, object]) -> str:
    words = {True: "true", False: "false"}
    return "".join(f"{key} = {words[v] if isinstance(v, bool) else repr(v)}\n" for key, v in values.items())


@pytest.mark.slow
def test_configurations_in_toml(tmp_path: Path) -> None:
    path, found = tmp_path / "config.toml", []
    odd = (
        *ODD_VALUES,
        "inf",
        "nan",
        "0x" + "f" * 5000,
        "1979-05-27",
        "07:32:00",
        "{a = 1}",
        "'''\n'''",
        "1_0",
        "[1, 'a']",
    )
    for chance in cases("toml"):
        text = toml(CONFIG)
        if chance.random() < 0.6:
            line = f"{chance.choice(list(CONFIG))} = "
            words = f"{line}{chance.choice(odd)}\n"
            text = "".join(words if each.startswith(line) else each for each in text.splitlines(keepends=True))
            path.write_bytes(text.encode())
        else:
            path.write_bytes(of_bytes(text.encode(), chance))
        found.append(config_is_sound(answer(lambda: read_config_file(path))))
    both_ways(found)
