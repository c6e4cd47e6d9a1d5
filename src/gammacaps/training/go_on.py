"""A training in a folder, to its end: begun, or gone on with where it was stopped."""

import contextlib
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import Finished, resume, train

HERE = ("data_dir", "device")  # what belongs to a machine and not to the network


def train_or_go_on(config: TrainConfig, run: Path, asked_by: str) -> None:
    """Trains into a run's folder; one that was begun by other options than `asked_by` tells of is refused."""
    if not run.exists():
        train(config, run)
        return
    begun = Run(run).config.train
    same = dict.fromkeys(HERE)
    if begun is None or {**vars(begun), **same} != {**vars(config), **same}:
        raise InputError(f"{run} was trained by other options than {asked_by}: move it away, or name other --runs.")
    with contextlib.suppress(Finished):
        resume(run, device=config.device, data_dir=config.data_dir)
