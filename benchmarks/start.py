"""How long capsules are at the start, by the network's size, and whether it learns: `python -m benchmarks.start`.

Each network starts twice: with the paper's weights (std 0.1, the convolution as torch makes it), and with the longer
capsules that gammacaps gives to networks whose class capsules the paper's weights leave nearly alike for all images.
"""

from typing import Any

import torch
from torch import Tensor

from gammacaps import create
from gammacaps.models import GammaCapsNet
from gammacaps.nn import RoutedCapsules
from gammacaps.nn.vector import PAPER_STD
from gammacaps.training.losses import margin_loss

SHALLOW: dict[str, Any] = {"kernel": 7, "stride": 2, "primary_kernel": 5, "filters": 16, "primary_types": 4}
COLOUR: dict[str, Any] = {**SHALLOW, "image_shape": (3, 32, 32), "decoder": ()}
NETWORKS: dict[str, dict[str, Any]] = {
    "28x28, hidden 16, 10 classes": {**COLOUR, "image_shape": (1, 28, 28), "hidden": (16,)},
    "96x96, hidden 16, 10 classes": {**COLOUR, "image_shape": (3, 96, 96), "hidden": (16,)},
    "hidden 16, 10 classes": {**COLOUR, "hidden": (16,)},
    "hidden 16, 100 classes": {**COLOUR, "hidden": (16,), "classes": 100},
    "hidden 16, 1000 classes": {**COLOUR, "hidden": (16,), "classes": 1000},
    "hidden 64, 10 classes": {**COLOUR, "hidden": (64,)},
    "hidden 16-16, 10 classes": {**COLOUR, "hidden": (16, 16)},
    "hidden 16-16-16, 10 classes": {**COLOUR, "hidden": (16, 16, 16)},
    "hidden 24-24, 100 classes": {**COLOUR, "hidden": (24, 24), "classes": 100},
    "hidden of 16 entries, 10 classes": {**COLOUR, "hidden": (16,), "hidden_size": 16},
}
IMAGES, STEPS = 16, 40


def started(changes: dict[str, Any], long: bool, seed: int = 0) -> GammaCapsNet:
    """A network of one convolution before its capsules with the paper's initial weights, or with the long ones."""
    torch.manual_seed(seed)
    model = create("paper", **changes)
    assert isinstance(model, GammaCapsNet)
    model.primary.convolution.reset_parameters()
    if long:
        model.primary.start_long(mean_square=0.05)
    for layer in model.routed:
        assert isinstance(layer, RoutedCapsules)
        layer.start_long() if long else layer.start(PAPER_STD)
    return model


def kinds(model: GammaCapsNet, images: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images of as many kinds as there are classes: smooth random pictures with noise on them."""
    generator = torch.Generator().manual_seed(seed)
    channels, height, width = model.image_shape
    coarse = torch.rand(model.classes, channels, 6, 6, generator=generator)
    labels = torch.randint(model.classes, (images,), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse[labels], size=(height, width), mode="bilinear")
    return 0.8 * smooth + 0.2 * torch.rand(smooth.shape, generator=generator), labels


def at_the_start(model: GammaCapsNet) -> dict[str, Any]:
    """Mean lengths of each layer, how far scores move from image to image, the gradient at the primary capsules."""
    images, labels = kinds(model, IMAGES)
    parse = model.parse(images, couplings=False)
    (gradient,) = torch.autograd.grad(margin_loss(parse.scores, labels), parse.poses[0])
    lengths = [activations.mean().item() for activations in parse.activations]
    return {"lengths": lengths, "moves": parse.scores.std(0).mean().item(), "gradient": gradient.norm().item()}


def learned(model: GammaCapsNet, steps: int = STEPS) -> float:
    """Share of one batch that the network has right after some steps on it."""
    images, labels = kinds(model, IMAGES)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = margin_loss(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (model(images).argmax(1) == labels).float().mean().item()


def main() -> None:
    print(f"| network | start | mean length, primary to class | scores move | gradient | right after {STEPS} steps |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, changes in NETWORKS.items():
        for long in (False, True):
            measured = at_the_start(started(changes, long))
            right = learned(started(changes, long))
            lengths = " ".join(f"{length:.2f}" for length in measured["lengths"])
            figures = f"{measured['moves']:.5f} | {measured['gradient']:.4f} | {right:.0%}"
            print(f"| {name} | {'long' if long else 'paper'} | {lengths} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
