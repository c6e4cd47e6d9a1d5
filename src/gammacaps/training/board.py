"""What a run shows of its training on TensorBoard."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.models import has_capsules
from gammacaps.training.learner import Learner
from gammacaps.training.watch import TakenStep, Watcher


def board_writer() -> Any:
    """TensorBoard's SummaryWriter, which not everyone has installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError("TensorBoard is not installed: pip install 'gammacaps[tensorboard]'.") from None
    return SummaryWriter


class Board(Watcher):
    """Scalars as often as they are logged, pictures as often as the state is saved."""

    def __init__(self, folder: Path) -> None:
        self.writer = board_writer()(folder / "tensorboard")

    def after_step(self, taken: TakenStep) -> None:
        if taken.logged:
            for name, value in taken.row.items():
                self.writer.add_scalar(name, value, taken.learner.step)
        if taken.due(taken.config.checkpoint_every):
            add_pictures(self.writer, taken.learner, taken.images[:8], taken.attacked[:8], taken.labels[:8])

    def close(self) -> None:
        self.writer.close()


@torch.no_grad()
def add_pictures(board: Any, learner: Learner, images: Tensor, attacked: Tensor, labels: Tensor) -> None:
    """Clean images, attacked ones and reconstructions of the attacked ones, one above the other."""
    rows = [images, attacked]
    model = learner.model
    if has_capsules(model) and model.reconstructs:
        rows.append(model.reconstruct(model.parse(attacked, couplings=False), labels).float())
    grid = torch.cat([torch.cat(list(row), dim=-1) for row in rows], dim=-2)[:3]
    board.add_image("clean, attacked, reconstructed", grid.cpu(), learner.step)
