"""How much better a network stands on the images that it learned from: `python -m benchmarks.overfitting RUN...`.

Training and test images under the very attack of its training, at the full radius. One line of JSON a network.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

import torch
import tyro

from gammacaps.data import load_set
from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.interval import wilson
from gammacaps.runs.run import Run
from gammacaps.training.step import attack


@dataclass(frozen=True)
class Options:
    """Attack training and test images as in training, and tell how many of each stay right."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Folders of runs, or names of shipped networks."""
    images: int = 1000
    """Images of each, as many of each class."""
    batch: int = 100
    """Images at once."""
    data_dir: str | None = None
    """Folder in which the data lie."""
    device: str = "auto"
    """auto, cpu, cuda."""


def measure(name: str, options: Options) -> dict[str, Any]:
    """The shares of training and of test images that are right under the training's attack."""
    run = Run(name)
    config = run.config.train
    if config is None or not config.robust:
        raise InputError(f"{name} was trained on clean images: there is no attack to repeat.")
    device = pick_device(options.device)
    model = run.model(device)
    figures: dict[str, Any] = {"run": run.folder.name}
    for split in ("train", "test"):
        data = load_set(config.data, split, data_dir=options.data_dir, size=config.size)
        images, labels = (x.to(device) for x in balanced(data, options.images))
        right = 0
        for place in range(0, len(images), options.batch):
            given = images[place : place + options.batch], labels[place : place + options.batch]
            with torch.no_grad():
                clean = model(given[0]) if config.trades else None
            attacked = attack(config, model, *given, step=place, progress=1.0, clean=clean)
            with torch.no_grad():
                right += int((model(attacked).argmax(dim=1) == given[1]).sum())
        figures[split] = {
            "accuracy": right / len(images),
            "interval": wilson(right, len(images)),
            "images": len(images),
        }
    shown = ("data", "eps", "attack_steps", "attack_step", "attack_loss", "loss", "shift", "flip", "trades")
    return {**figures, "train_config": {name: getattr(config, name) for name in shown}}


def main() -> None:
    options = tyro.cli(Options, description=Options.__doc__)
    try:
        for run in options.runs:
            line = {**measure(run, options), "machine": describe_machine(options.device)}
            print(json.dumps(line), flush=True)
    except InputError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
