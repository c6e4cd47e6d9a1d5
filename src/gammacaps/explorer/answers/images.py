"""Images and scores as the page gets them, and networks that say how far they are."""

import base64
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gammacaps.explain.ablation import without
from gammacaps.explain.pictures import image_png, plain
from gammacaps.explorer import questions
from gammacaps.explorer.jobs.job import Tick
from gammacaps.explorer.networks import Network
from gammacaps.models import Model
from gammacaps.models.shared_weights import on_same_weights

SEED = 0


def label_of(asked: questions.ParseQuestion, network: Network) -> int | None:
    """The class of a test image; of any other image, or one of other classes than the network's, nobody knows."""
    return int(network.labels[asked.image["sample"]]) if "sample" in asked.image and network.labelled else None


def with_off(asked: questions.ParseQuestion, network: Network) -> Model:
    return without(network.capsules, asked.off) if asked.off else network.model


@torch.no_grad()
def scores_of(model: Model, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N"]:
    """In [0, 1]: the lengths of class capsules; of a network without capsules the probabilities."""
    return model.probabilities(model(images))


def judged(scores: Float[Tensor, "N"]) -> dict[str, Any]:
    return {"scores": plain(scores), "predicted": int(scores.argmax())}


def counted(model: Any, tick: Tick, total: int) -> Any:
    """The same network, which tells of each pass it makes; with another's hooks it keeps them."""
    counting = on_same_weights(model)
    done = 0

    def count(module: nn.Module, given: object) -> None:
        nonlocal done
        tick(min(done, total), total)
        done += 1

    leaves = (module for module in counting.modules() if next(module.children(), None) is None)
    next(leaves).register_forward_pre_hook(count)  # each pass calls the first one once
    return counting


def shown(image: Float[Tensor, "C H W"]) -> dict[str, str]:
    """An image to look at, and its bytes to ask about again."""
    levels = (image * 255).round().byte().cpu().numpy().tobytes()
    return {"png": data_url(image), "pixels": base64.b64encode(levels).decode()}


def data_url(image: Float[Tensor, "C H W"]) -> str:
    """A PNG of the image's own pixels."""
    return "data:image/png;base64," + base64.b64encode(image_png(image, side=max(image.shape[1:]))).decode()
