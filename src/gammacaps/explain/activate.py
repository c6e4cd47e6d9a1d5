"""Inputs that activate a single capsule, and so show what it means (Algorithm 2 of the paper, equation 4)."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gammacaps.attacks import frozen
from gammacaps.errors import InputError, check_choice
from gammacaps.explain.gpu_steps import fast_steps
from gammacaps.explain.pictures import image_png
from gammacaps.explain.search import SEARCHES, start_images, step_sizes
from gammacaps.explain.steady import NOISE, steadily
from gammacaps.models import CapsuleModel, require_capsules
from gammacaps.options import check_amount, check_seed
from gammacaps.short_repr import short_repr

# Images that a GPU moves together by default: enough to keep it busy in about a gigabyte.
AT_ONCE = 240
# The paper's lambda for hidden capsules.
PENALTY = 1e-5
BEST = 5  # starts that are averaged, by default
STILL_ACTIVE = 0.9  # of the best start's length: by a mean that reaches less, the capsule does not mean the same


@dataclass(frozen=True)
class Generated:
    """An input generated for one capsule: the mean of the best starts. Far from one another they mean many features."""

    image: Tensor  # C H W, the mean
    activation: float  # of the capsule, by the mean image
    scores: Tensor  # N, the class capsules' activations by the mean image
    best: Tensor  # best C H W, the images with the smallest loss, that first
    activations: Tensor  # best, of the capsule by each of them
    spread: float  # their standard deviation, mean over the pixels
    seed: int
    averaged: int = BEST  # so many of the best, the first of them, have this mean

    __repr__ = short_repr

    def _repr_png_(self) -> bytes:
        return image_png(self.image)


def activate(
    model: nn.Module,
    layer: str | int,
    capsule: int,
    *,
    starts: int = 60,
    steps: int = 1000,
    step: float = 0.01,
    penalty: float | None = None,
    best: int | None = None,
    search: str = "improved",
    noise: float = NOISE,
    seed: int = 0,
    batch: int | None = None,
) -> Generated:
    """An input that activates one capsule; `activate_all` for several, and for what the options mean."""
    return activate_all(
        model,
        layer,
        [capsule],
        starts=starts,
        steps=steps,
        step=step,
        penalty=penalty,
        best=best,
        search=search,
        noise=noise,
        seed=seed,
        batch=batch,
    )[0]


def activate_all(
    model: nn.Module,
    layer: str | int,
    capsules: Sequence[int] | None = None,
    *,
    starts: int = 60,
    steps: int = 1000,
    step: float = 0.01,
    penalty: float | None = None,
    best: int | None = None,
    search: str = "improved",
    noise: float = NOISE,
    seed: int = 0,
    batch: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Generated]:
    """Inputs that activate capsules of a layer, each alone: noise moved downhill on (|v| - 1)^2 + penalty * its sum.

    Each capsule gets what `activate` gives it alone with the same options. A batch is always filled up to the same
    size, for the size of a batch, and it alone, changes how sums are rounded.

    Args:
        model: a capsule network; for matrix capsules |v| is the activation.
        layer: one of model.layers, such as "hidden 1", or its index.
        capsules: their indices; all of the layer where there are none.
        starts: random images to start from; a start depends on search, seed, layer and capsule alone.
        steps: how many steps are taken against the gradient's sign, each back into [0, 1].
        step: how long each of them is.
        penalty: the paper's lambda, 1e-5 by default; for class capsules 1e-4, in the paper's search 0. The improved
            search has it only in the loss by which the best starts are chosen: its steps have a price of their own.
        best: how many of the starts, those with the smallest loss at the end, are averaged; 5 by default.
        search: "paper" for Algorithm 2 as it stands there; "improved" for the same loss from faint noise, with steps
            that fall from twice `step` to a tenth of it and build only what keeps the capsule active while the image
            is disturbed (see steady.py): far more of these pictures can be read.
        noise: in the improved search, the deviation of what disturbs; two thirds of the radius that the network was
            trained at is about right (`noise_for`).
        batch: images moved together: 240 unless told, on a CPU one capsule's.
        on_progress: told after each batch how many of how many capsules have theirs.
    """
    network, index, count = check_capsules(model, layer)
    capsules = range(count) if capsules is None else capsules
    for capsule in capsules:
        if not 0 <= capsule < count:
            name = network.layers[index]
            raise InputError(f"There is no capsule {capsule} in layer '{name}': its capsules are 0 to {count - 1}.")
    check_choice("search", search, tuple(SEARCHES))
    if penalty is None:
        penalty = SEARCHES[search].class_penalty if index == len(network.layers) - 1 else PENALTY
    best = min(BEST, starts) if best is None else best
    weight = next(network.parameters())
    if batch is None:
        batch = AT_ONCE if weight.device.type != "cpu" else min(starts, AT_ONCE)
    _check_numbers(starts, steps, step, penalty, best, seed, batch)
    check_amount("noise", noise)

    together = max(1, batch // starts)  # capsules in a batch; where not even one fits, its starts take several batches
    size = min(batch, together * starts)
    shape = network.image_shape
    results: list[Generated] = []
    with frozen(network), torch.no_grad(), torch.autocast(weight.device.type, enabled=False):
        fast, sizes = fast_steps(network, index, size, penalty), step_sizes(search, steps, step)
        for first in range(0, len(capsules), together):
            group = capsules[first : first + together]
            begun = torch.cat([start_images(seed, index, capsule, starts, shape, search) for capsule in group])
            images = begun.to(weight.device, torch.promote_types(weight.dtype, torch.float32))
            chosen = torch.tensor(group, device=weight.device).repeat_interleave(starts)
            numbers = torch.arange(starts, device=weight.device).repeat(len(group))
            moved = []
            for part in zip(images.split(size), chosen.split(size), numbers.split(size), strict=True):
                x, c, n = (filled_up(tensor, size) for tensor in part)
                if SEARCHES[search].steady:
                    gradient_of = functools.partial(gradient_at, network, index, c) if fast is None else fast.toward(c)
                    x = steadily(gradient_of, x, n, sizes, noise, seed)
                elif fast is None:
                    x = descended(network, index, x, c, sizes, penalty)
                else:
                    x = fast.run(x, c, sizes)
                moved.append(x[: len(part[0])])
            for capsule, generated in zip(group, torch.cat(moved).split(starts), strict=True):
                results.append(
                    average_best(network, index, capsule, generated, penalty, best, seed, apart=SEARCHES[search].apart)
                )
            if on_progress is not None:
                on_progress(len(results), len(capsules))
    return results


def filled_up(tensor: Tensor, size: int) -> Tensor:
    """With zeros, along the first axis."""
    return torch.cat((tensor, tensor.new_zeros(size - len(tensor), *tensor.shape[1:])))


def activations_of(
    model: CapsuleModel, layer: int, images: Float[Tensor, "B C H W"], chosen: Int[Tensor, "B"]
) -> Float[Tensor, "B"]:
    """The activation of one capsule in each image."""
    parse = model.parse(images.to(next(model.parameters()).dtype), couplings=False)
    return parse.activations[layer].gather(1, chosen.unsqueeze(1)).squeeze(1).to(images.dtype)


def descended(
    model: CapsuleModel,
    layer: int,
    images: Float[Tensor, "B C H W"],
    chosen: Int[Tensor, "B"],
    sizes: Sequence[float],
    penalty: float,
) -> Float[Tensor, "B C H W"]:
    """Images after steps of these sizes toward their chosen capsules (Algorithm 2, lines 7 to 11)."""
    for size in sizes:
        gradient = gradient_at(model, layer, chosen, images)
        # A gradient that is not a number moves nothing, so that the result stays an image.
        images = (images - size * (gradient + penalty).nan_to_num().sign()).clamp(0, 1)
    return images


def gradient_at(
    model: CapsuleModel, layer: int, chosen: Int[Tensor, "B"], images: Float[Tensor, "B C H W"]
) -> Float[Tensor, "B C H W"]:
    """The gradient of (|v| - 1)^2 of the chosen capsules."""
    leaf = images.detach().requires_grad_()
    with torch.enable_grad():
        loss = (activations_of(model, layer, leaf, chosen) - 1).square().sum()
        (gradient,) = torch.autograd.grad(loss, leaf)
    return gradient


def average_best(
    model: CapsuleModel,
    layer: int,
    capsule: int,
    images: Float[Tensor, "B C H W"],
    penalty: float,
    best: int,
    seed: int,
    *,
    apart: bool,
) -> Generated:
    """The mean of the images with the smallest loss (Algorithm 2, lines 14 and 15).

    With `apart` no image is taken into the mean by which the capsule is not active any more: the best starts may have
    found different things, whose mean is none of them.
    """
    chosen = torch.full((len(images),), capsule, device=images.device)
    parts = zip(images.split(AT_ONCE), chosen.split(AT_ONCE), strict=True)
    reached = torch.cat([activations_of(model, layer, *part) for part in parts])  # B
    loss = (reached - 1).square() + penalty * images.flatten(1).sum(1)  # B
    order = loss.argsort(stable=True)[:best]
    kept = images[order]
    averaged = len(kept)
    if apart:
        means = kept.cumsum(0) / torch.arange(1, len(kept) + 1, device=kept.device).view(-1, 1, 1, 1)
        lengths = activations_of(
            model, layer, means, chosen[: len(kept)]
        ).nan_to_num()  # by the first, the first two ...
        averaged = int((lengths >= STILL_ACTIVE * lengths[0]).nonzero().max()) + 1
    image = kept[:averaged].mean(0)
    parse = model.parse(image.unsqueeze(0).to(next(model.parameters()).dtype), couplings=False)
    activation = parse.activations[layer][0, capsule].item()
    spread = kept.std(0, correction=0).mean().item()
    return Generated(image, activation, parse.scores[0], kept, reached[order], spread, seed, averaged)


def check_capsules(model: nn.Module, layer: str | int) -> tuple[CapsuleModel, int, int]:
    """The network, the layer's index and the number of its capsules."""
    network = require_capsules(model, "activate", "what an image activates depends on its")
    layers = network.layers
    if isinstance(layer, int) and -len(layers) <= layer < len(layers):
        layer = layers[layer]
    check_choice("layer", layer, layers, also=f", or its index from 0 to {len(layers) - 1}")
    index = layers.index(str(layer))
    return network, index, network.counts()[index]


def _check_numbers(starts: int, steps: int, step: float, penalty: float, best: int, seed: int, batch: int) -> None:
    if min(starts, steps, batch) < 1:
        raise InputError(
            f"Generating inputs needs at least 1 start, 1 step and a batch of 1, not {starts}, {steps} and {batch}."
        )
    if not 1 <= best <= starts:
        raise InputError(f"The best of {starts} starts can be 1 to {starts} of them, not {best}.")
    if not 0 < step < math.inf:
        raise InputError(f"The step must be above 0, not {step}.")
    if not 0 <= penalty < math.inf:
        raise InputError(f"The penalty must be 0 or more, not {penalty}.")
    check_seed(seed)
