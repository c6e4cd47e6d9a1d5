"""What a run shows of its training on TensorBoard."""

from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.models import has_capsules
from gammacaps.training.checkpoint import Learner


def board_writer() -> Any:
    """TensorBoard's SummaryWriter, which not everyone has installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError("TensorBoard is not installed: pip install 'gammacaps[tensorboard]'.") from None
    return SummaryWriter


@torch.no_grad()
def add_pictures(board: Any, learner: Learner, images: Tensor, attacked: Tensor, labels: Tensor) -> None:
    """Clean images, attacked ones and reconstructions of the attacked ones, one above the other."""
    rows = [images, attacked]
    model = learner.model
    if has_capsules(model) and model.reconstructs:
        rows.append(model.reconstruct(model.parse(attacked, couplings=False), labels).float())
    grid = torch.cat([torch.cat(list(row), dim=-1) for row in rows], dim=-2)[:3]
    board.add_image("clean, attacked, reconstructed", grid.cpu(), learner.step)
