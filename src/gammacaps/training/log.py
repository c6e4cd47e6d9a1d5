"""What a run writes down of its training: the lines of metrics.jsonl, and TensorBoard's pictures."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.files import write_whole
from gammacaps.models import GammaCapsNet
from gammacaps.training.checkpoint import Learner

METRICS = "metrics.jsonl"


def forget_metrics_after(path: Path, step: int) -> None:
    """Drops the lines that an interrupted run wrote after its last checkpoint."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text().splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (json.JSONDecodeError, KeyError, TypeError):
            continue  # half a line
    write_whole(path, "".join(line + "\n" for line in kept).encode())


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
    if isinstance(model, GammaCapsNet) and model.decoder is not None:
        rows.append(model.reconstruct(model.parse(attacked, couplings=False), labels).float())
    grid = torch.cat([torch.cat(list(row), dim=-1) for row in rows], dim=-2)[:3]
    board.add_image("clean, attacked, reconstructed", grid.cpu(), learner.step)
