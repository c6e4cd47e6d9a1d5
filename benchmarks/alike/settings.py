"""What is alike: data with their radius and training's attack, as the recipes in docs/training have them; networks."""

from dataclasses import dataclass
from typing import Any

from benchmarks.viewpoints.learn import Network

EMA = 0.999  # of the recipes; nothing is chosen by images, so that the running mean at the end is what counts


@dataclass(frozen=True)
class Setting:
    """What a training is told of its data and of the attack, and the set whose test images are measured."""

    training: dict[str, Any]
    measured: str

    @property
    def eps(self) -> float:
        return float(self.training["eps"])


_CLOTHES: dict[str, Any] = {"eps": 0.1, "attack_steps": 7, "attack_step": 0.03, "eps_ramp": 0.1}
SETTINGS = {
    "mnist-0.3": Setting(
        {
            "data": "mnist",
            "eps": 0.3,
            "attack_steps": 10,
            "attack_step": 0.06,
            "eps_ramp": 0.3,
            "turn": 10.0,
            "zoom": 0.1,
            "shift": 1,
        },
        "mnist",
    ),
    "fashion-mnist-0.1": Setting({"data": "fashion-mnist", **_CLOTHES}, "fashion-mnist"),
    "fashion-mnist-0.3": Setting(
        {
            "data": "fashion-mnist",
            "eps": 0.3,
            "attack_steps": 10,
            "attack_step": 0.06,
            "eps_ramp": 0.4,
            "attack_start": "blocks",
        },
        "fashion-mnist",
    ),
    # The test images of the toys that the shipped network's weights were not chosen by.
    "smallnorb-0.03": Setting(
        {
            "data": "smallnorb",
            "eps": 0.03,
            "attack_steps": 3,
            "attack_step": 0.015,
            "eps_ramp": 0.1,
            "flip": True,
            "shift": 1,
            "brightness": 0.1,
            "contrast": 0.2,
        },
        "smallnorb-unseen",
    ),
    # The sample in the package, of which no recipe learns: for a trial without downloads.
    "fashion-mini-0.1": Setting({"data": "fashion-mini", **_CLOTHES}, "fashion-mini"),
}

# All three of a scale have the very same convolutions; the decoder of the capsules is their own.
SCALES = {
    "small": {
        "SDA": Network("small"),
        "RBA": Network("small", "rba"),
        "CNN": Network("cnn", changes=("stem=deep", "deep_filters=16", "width=128")),
    },
    "deep": {
        "SDA": Network("deep"),
        "RBA": Network("deep", "rba"),
        "CNN": Network("cnn", changes=("stem=deep",)),
    },
}
ATTACKED, CLEAN = "attacked", "clean"  # how a network is trained
