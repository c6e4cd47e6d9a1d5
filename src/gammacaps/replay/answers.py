"""A module that answers like a classifier, with gradients of the images, by replaying recorded passes."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gammacaps.replay.kept_recordings import Room, room_of
from gammacaps.replay.recorded_pass import RecordedPass, kept_pass
from gammacaps.replay.trial import may_replay


class Replayed(nn.Module):
    """Gives the scores of `model`, and the gradient of the images, at the speed of the GPU; the weights get none.

    For attack libraries, which take it as a model. Where passes can't be replayed, `model` itself is called. The
    weights are those of `model` at each call, its mode and whether autocast is on too.

    >>> import gammacaps, torch
    >>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
    >>> fast = gammacaps.attacks.replayed(model)
    >>> torch.equal(fast(images[:4]), model(images[:4]))
    True
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        room = room_of(self.model, images)
        if room is None or images.ndim < 2 or len(images) == 0 or images.dtype != torch.float32:
            scores: Tensor = self.model(images)
            return scores
        gradient = torch.is_grad_enabled() and images.requires_grad
        recorded = recorded_pass(self.model, images.detach(), room, gradient=gradient)
        if recorded is None:
            scores = self.model(images)
        elif gradient:
            scores = _Replay.apply(images, recorded)
        else:
            scores = recorded.scores(images)[0]
        return scores


def replayed(model: nn.Module) -> nn.Module:
    """The model as a module that answers alike, on a GPU by replaying recorded passes; once is enough."""
    return model if isinstance(model, Replayed) else Replayed(model)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, recorded: RecordedPass) -> Tensor:
        scores, ctx.turn = recorded.scores(images)
        ctx.recorded = recorded
        ctx.save_for_backward(images)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (images,) = ctx.saved_tensors
        return ctx.recorded.gradient(images, grad, ctx.turn), None


def recorded_pass(model: nn.Module, images: Tensor, room: Room, *, gradient: bool) -> RecordedPass | None:
    """A recorded pass that these images fit into; None where the network turns out to be none that can be replayed."""
    if not may_replay(model, images, room):
        return None
    return kept_pass(model, images, room, gradient=gradient)
