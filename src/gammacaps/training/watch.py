"""What watches the steps of a training: the log, the checkpoint, what is shown, the refusal of NaN and the stop.

The loop tells each watcher of each step, in the order of their list. With several processes the first alone shows
progress and writes for TensorBoard; the other watchers are in all of them, and ask all what they ask of all processes.
"""

import contextlib
import functools
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.models.folder import write_weights
from gammacaps.progress import Progress, time_left
from gammacaps.runs.metrics import add_metrics
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.checkpoint import CHECKPOINT, write_checkpoint
from gammacaps.training.gamma_objective import ACTIVE, set_counts
from gammacaps.training.held_folder import HeldFolder
from gammacaps.training.learner import Learner
from gammacaps.training.schedule import Length, learning_rate, radius
from gammacaps.training.sharing import Sharing
from gammacaps.training.signals import Interrupted, StopRequests


@dataclass
class TakenStep:
    """A step that was just taken, and what it has come to; the learner stands after it."""

    config: TrainConfig
    learner: Learner
    sharing: Sharing
    progress: float  # how much of training was done before it
    images: Tensor  # B C H W
    labels: Tensor  # B
    attacked: Tensor  # B C H W
    shares: tuple[dict[str, Tensor], Tensor]  # this process's part of the losses and of the accuracy
    last: bool  # of this training: it ends here, or stops
    interrupted: bool  # it stops before its end, since it was asked to
    figures: dict[str, float] = field(default_factory=dict)  # what watchers have measured after it, in all processes

    def due(self, *periods: int) -> bool:
        """Whether it is time for what is done so often: also at the last step."""
        return self.last or any(self.learner.step % every == 0 for every in periods)

    @property
    def logged(self) -> bool:
        """Whether it has a line in metrics.jsonl: every so often, and where something was measured."""
        return self.due(self.config.log_every) or bool(self.figures)

    @functools.cached_property
    def values(self) -> tuple[dict[str, Tensor], Tensor]:
        """The losses and the accuracy of the whole batch: all processes ask for them, or none does."""
        return self.sharing.merged(*self.shares)

    @functools.cached_property
    def row(self) -> dict[str, Any]:
        """The step's line of metrics.jsonl: all processes ask for it, or none does."""
        config, learner, (losses, accuracy) = self.config, self.learner, self.values
        return {
            "step": learner.step,
            "seconds": round(learner.seconds, 3),
            "accuracy": accuracy.item(),
            **{name: value.item() for name, value in losses.items() if name != ACTIVE},
            **(set_counts(losses[ACTIVE]) if ACTIVE in losses else {}),
            "eps": radius(config, self.progress) if config.robust else 0.0,
            "lr": learning_rate(config, learner.step - 1, self.progress),
            **self.figures,
        }


class Watcher:
    """Is told of every step, and of the end."""

    def after_step(self, taken: TakenStep) -> None:
        """What it does once a step is taken; an error that it raises ends the training."""
        raise NotImplementedError

    def close(self) -> None:
        """However training ends."""


class RefuseNaN(Watcher):
    """Stops before a state that is not a number is logged, or replaces the last good one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def after_step(self, taken: TakenStep) -> None:
        config = taken.config
        measured = (config.validate_every,) if config.validate else ()
        if not taken.due(config.log_every, config.checkpoint_every, *measured):
            return
        weights: list[Tensor] = list(taken.learner.model.parameters())
        finite = torch.isfinite(taken.values[0]["loss"])
        if finite and torch.isfinite(torch.stack(torch._foreach_norm(weights))).all():
            return
        kept = self.folder / CHECKPOINT
        where = f"the last good checkpoint is {kept}" if kept.exists() else "there was no checkpoint yet"
        raise InputError(
            f"Training became NaN or infinite by step {taken.learner.step}, and {where}: train again with a lower --lr."
        )


class Log(Watcher):
    """Lines of metrics.jsonl."""

    def __init__(self, held: HeldFolder) -> None:
        self.held = held

    def after_step(self, taken: TakenStep) -> None:
        if taken.logged:
            self.held.write(add_metrics, taken.row)


class Checkpoints(Watcher):
    """The state to go on from, and the weights to use."""

    def __init__(self, held: HeldFolder) -> None:
        self.held = held

    def after_step(self, taken: TakenStep) -> None:
        if taken.due(taken.config.checkpoint_every):
            self.held.write(save, taken.learner)


def save(folder: Path, learner: Learner) -> None:
    """The checkpoint first: killed before the weights are written, a run goes on from it, or has them made up for."""
    write_checkpoint(folder, learner)
    write_weights(folder, learner.kept())


class TrainingDisplay(Watcher):
    """What a person sees, or with `as_json` a program: metrics on standard error, or as JSON lines on standard output.

    Where it can't be written, as its reader has gone or a disk is full, training is asked to stop, as by Ctrl-C.
    """

    def __init__(self, length: Length, learner: Learner, requests: StopRequests, *, as_json: bool) -> None:
        self.length, self.requests, self.as_json = length, requests, as_json
        self.progress = Progress("step", quiet=as_json, every=5.0, started=0.0)
        self.progress.open_bar(learner.step, length.steps)

    def after_step(self, taken: TakenStep) -> None:
        with self._noted():
            self.progress.advance()
            if taken.logged:
                self._show(taken.row)

    def close(self) -> None:
        with self._noted():
            self.progress.close()

    def _show(self, row: dict[str, Any]) -> None:
        words = f"{_words(row)}{time_left(self._remaining(row))}"
        if self.as_json:
            print(json.dumps(row), flush=True)
        elif self.progress.bar is not None:
            self.progress.bar.set_postfix_str(words)
        else:
            steps = self.length.steps
            line = f"step {row['step']}{f'/{steps}' if steps else ''}  {words}"
            self.progress.show(line, now=row["seconds"], always=row["step"] == steps)

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.requests.unread = True

    def _remaining(self, row: dict[str, Any]) -> float | None:
        """Seconds left, by whichever limit comes first."""
        left = []
        if self.length.steps is not None:
            left.append((self.length.steps - row["step"]) * row["seconds"] / max(1, row["step"]))
        if self.length.seconds is not None:
            left.append(self.length.seconds - row["seconds"])
        return max(0.0, min(left)) if left else None


def _words(row: dict[str, Any]) -> str:
    kind = f"under attack (eps {row['eps']:.2g})" if row["eps"] else "clean"
    held = f", {100 * row['validation']:.1f}% of held-back images" if "validation" in row else ""
    return f"loss {row['loss']:.4f}, accuracy {100 * row['accuracy']:.1f}% {kind}{held}"


class StopWhenAsked(Watcher):
    """Ends a training that was asked to stop; it comes last, once all is saved."""

    def __init__(self, folder: Path, requests: StopRequests) -> None:
        self.folder, self.requests = folder, requests

    def after_step(self, taken: TakenStep) -> None:
        if taken.interrupted:
            why = ", since its output can't be written any more" if self.requests.unread else ""
            raise Interrupted(
                f"Stopped at step {taken.learner.step}{why}, and saved; go on with: gammacaps train --resume "
                f"{shlex.quote(str(self.folder))}"
            )
