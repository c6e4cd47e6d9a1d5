"""A network as a browser can run it: the shape of its layers, and its weights in their order."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gammacaps.models.gamma_capsules import GammaCapsNet
from gammacaps.models.protocol import Model
from gammacaps.nn import RoutedCapsules, layers_of
from gammacaps.ops.routing.rules import OURS

MOST_WEIGHTS = 12_000_000  # that a page can load and run; the paper's network has 7.8 million without its decoder


def why_not(model: Model) -> str | None:
    """Why a network can't run in the browser, or None where it can."""
    if not isinstance(model, GammaCapsNet):
        return f"it is a {model.title} of another kind than those with vector capsules"
    config = model.config
    if config.encoder == "residual":
        return "it has the residual encoder"
    if config.input_scale != 1:
        return "it takes images in another scale than 0 to 1"
    if config.routing not in OURS:
        return f"it routes by the rule {config.routing}, of which there is no JavaScript"
    if model.depends_on_neighbours:
        return "its answer to an image depends on the images beside it"
    count = sum(tensor.numel() for tensor in weights_of(model))
    if count > MOST_WEIGHTS:
        return f"it has {count:,} weights, and {MOST_WEIGHTS:,} are the most for a page"
    return None


def shape_of(model: Model) -> dict[str, Any]:
    """The layers from the image to the class capsules."""
    assert isinstance(model, GammaCapsNet)  # why_not has said so
    encoder: list[dict[str, Any]] = []
    for part in model.encoder:
        if isinstance(part, nn.Conv2d):
            encoder.append(_convolution(part))
        elif isinstance(part, nn.MaxPool2d):
            encoder.append({"kind": "pooling"})
        else:
            encoder[-1]["activation"] = {nn.ReLU: "relu", nn.SiLU: "silu"}[type(part)]
    return {
        "image_shape": list(model.image_shape),
        "layers": list(model.layers),
        "grids": [list(grid) for grid in model.grids],
        "iterations": model.iterations,
        "encoder": encoder,
        "primary": {**_convolution(model.primary.convolution), "size": model.primary.size},
        "routed": [_routed(layer) for layer in layers_of(model.routed, RoutedCapsules)],
    }


def weights_of(model: Model) -> Iterator[Tensor]:
    """In the order of the layers: of a convolution (filters, channels, rows, columns), of routing (I, d, J, D)."""
    assert isinstance(model, GammaCapsNet)
    convolutions = [part for part in model.encoder if isinstance(part, nn.Conv2d)]
    for part in (*convolutions, model.primary.convolution):
        assert part.bias is not None
        yield from (part.weight.detach(), part.bias.detach())
    for layer in layers_of(model.routed, RoutedCapsules):
        yield layer.weight.detach().transpose(1, 2)
        if layer.bias is not None:
            yield layer.bias.detach()


def packed_weights(model: Model) -> tuple[str, bytes]:
    """All weights one after the other, with their kind: in half precision where that loses nothing."""
    flat = torch.cat([tensor.flatten() for tensor in weights_of(model)]).float().cpu()
    if torch.equal(flat.half().float(), flat):
        return "float16", flat.half().numpy().astype("<f2").tobytes()
    return "float32", flat.numpy().astype("<f4").tobytes()


def _convolution(part: nn.Conv2d) -> dict[str, Any]:
    assert isinstance(part.padding, tuple)
    return {
        "kind": "convolution",
        "channels": part.in_channels,
        "filters": part.out_channels,
        "kernel": part.kernel_size[0],
        "stride": part.stride[0],
        "padding": part.padding[0],
        "activation": None,
    }


def _routed(layer: RoutedCapsules) -> dict[str, Any]:
    I, J, d, D = layer.weight.shape
    return {
        "lower": I,
        "upper": J,
        "lower_size": d,
        "upper_size": D,
        "rule": layer.rule,
        "iterations": layer.iterations,
        "bias": layer.bias is not None,
    }
