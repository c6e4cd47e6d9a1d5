"""Does an attack that we did not write break more than a card says? `python -m benchmarks.another_library NAME...`

foolbox attacks the network's test images: PGD on cross-entropy from several random starts, and momentum PGD. It is
given logarithms of the lengths, since cross-entropy of the lengths themselves is a weak loss; the answer, the longest
capsule, stays the same. An image counts as right if it stands under all. One line of JSON a network: that share with
its interval, the worst case of the card at the radius of training, and whether the first interval lies wholly below
the second.
"""

import json
import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from gammacaps.environment import describe_machine, pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.interval import wilson
from gammacaps.runs.run import Run

SMALLEST = 1e-6  # a length, so that its logarithm is finite


@dataclass(frozen=True)
class Options:
    """Attack networks by another library and hold the result against their own figures."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Names of shipped networks, or folders of evaluated runs."""
    images: int = 1000
    """Test images, as many of each class."""
    steps: int = 100
    """Steps of each attack, of a tenth of the radius."""
    starts: int = 3
    """Random starts of the first attack."""
    batch: int = 100
    """Images at once."""
    device: str = "auto"
    """auto, cpu, cuda."""


class Logits(nn.Module):
    """A network whose scores are lengths, answering with their logarithms."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        lengths: Tensor = self.model(images)  # (B, N)
        return lengths.clamp_min(SMALLEST).log()


def stands(model: nn.Module, images: Tensor, labels: Tensor, eps: float, options: Options) -> Tensor:
    """(B,) whether each image is right under every attack."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own imports
            foolbox: Any = import_module("foolbox")
    except ImportError:
        raise InputError("foolbox is not installed: pip install -c constraints.txt 'foolbox>=3.3.4'.") from None
    outside = foolbox.PyTorchModel(Logits(model).eval(), bounds=(0, 1), device=images.device)
    kinds = [foolbox.attacks.LinfPGD] * options.starts
    kinds.append(foolbox.attacks.LinfMomentumIterativeFastGradientMethod)
    attacks = [kind(abs_stepsize=eps / 10, steps=options.steps) for kind in kinds]
    right = torch.ones_like(labels, dtype=torch.bool)
    for attack in attacks:
        _, attacked, _ = attack(outside, images, labels, epsilons=eps)
        inside = (attacked - images).abs().amax().item() <= eps + 1e-5 and attacked.min() >= 0 and attacked.max() <= 1
        if not inside:
            raise InputError(f"{attack} left the ball of {eps:g}: its result does not count.")
        with torch.no_grad():
            right &= model(attacked).argmax(dim=1) == labels
    return right


def measure(name: str, options: Options) -> dict[str, Any]:
    """The share that stands under foolbox's attacks, beside what the network's own figures say."""
    run = Run(name)
    results, eps = run.results(), run.radius
    if results is None or eps is None:
        raise InputError(f"{name} has no figures at a radius of training: measure it with gammacaps evaluate {name}.")
    own = next((row for row in results["worst"] if row["eps"] == eps), None)
    if own is None:
        raise InputError(f"{name} was not evaluated at eps {eps:g}, the radius of its training.")
    torch.manual_seed(0)  # foolbox draws its starts from torch's own generator
    device = pick_device(options.device)
    model = run.model(device)
    images, labels = (part.to(device) for part in balanced(run.load_data("test"), options.images))
    parts = zip(images.split(options.batch), labels.split(options.batch), strict=True)
    right = sum(int(stands(model, *part, eps, options).sum()) for part in parts)
    interval = wilson(right, len(images))
    return {
        "run": run.folder.name,
        "eps": eps,
        "images": len(images),
        "another_library": {"accuracy": right / len(images), "interval": interval},
        "card": {"accuracy": own["accuracy"], "interval": own["interval"], "images": own["images"]},
        "below_the_card": interval[1] < own["interval"][0],
        "settings": {"steps": options.steps, "starts": options.starts},
    }


def main() -> None:
    options = tyro.cli(Options, description=Options.__doc__)
    try:
        for run in options.runs:
            print(json.dumps({**measure(run, options), "machine": describe_machine(options.device)}), flush=True)
    except InputError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
