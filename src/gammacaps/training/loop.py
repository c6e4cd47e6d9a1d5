"""Training: on clean images, or under attack, so that every weight learns from the worst image near each image.

All randomness is a function of the seed and the step: initial weights, the order of the images, the attack's
starts. So a run that was interrupted and resumed ends at the very weights of an unbroken one.
"""

import contextlib
import dataclasses
import functools
import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gammacaps.data import DataSet, StoredSet
from gammacaps.distributed.launch import launch
from gammacaps.distributed.processes import Processes, joined, own_device
from gammacaps.environment import describe_machine
from gammacaps.errors import InputError
from gammacaps.files import is_run, new_folder
from gammacaps.locks import FolderLock, locked
from gammacaps.models import Model, load, to_config
from gammacaps.models.stored import CONFIG, write_config, write_weights
from gammacaps.runs.metrics import add_metrics, forget_metrics_after
from gammacaps.runs.run import Run, refuse_import
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.batches import batches
from gammacaps.training.board import add_pictures, board_writer
from gammacaps.training.checkpoint import (
    CHECKPOINT,
    Learner,
    check_can_go_on,
    put_back,
    read_checkpoint,
    write_checkpoint,
)
from gammacaps.training.distribution import Sharing, parts_of
from gammacaps.training.execution import compile_routing, recompute_encoder
from gammacaps.training.progress import Progress
from gammacaps.training.schedule import learning_rate, radius
from gammacaps.training.start import check_same_data, describe, new_model, training_data
from gammacaps.training.step import Objective, take_step


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop (a signal, or a reader of its output that went away) and saved its state."""


class Finished(InputError):
    """There is nothing left to train."""


def train(
    config: TrainConfig,
    folder: Path,
    *,
    overwrite: bool = False,
    as_json: bool = False,
    processes: Processes | None = None,
    until: int | None = None,
) -> Model:
    """Trains a new network into a new run's folder, with all processes that torchrun started unless told otherwise.

    To its end, or `until` a step from where it can be resumed.
    """
    with joined() if processes is None else contextlib.nullcontext(processes) as together:
        if together.first(lambda: _goes_on(folder, config)):
            try:
                return resume(folder, as_json=as_json, processes=together, until=until, trust=True)
            except Finished:
                return together.first(lambda: load(folder))
        data = training_data(config, together)
        model = new_model(config, data)
        # What can't be used is said before a folder is made.
        together.each(lambda: own_device(config.device))
        parts_of(min(config.batch, len(data.labels)), together, config.accumulate)
        if config.tensorboard:
            board_writer()
        described = {"model": to_config(model), "train": dataclasses.asdict(config), "data": describe(data)}
        launched = {"launch": launch().name} if launch().name else {}  # by which a restart knows its own run
        with contextlib.ExitStack() as held:
            own: list[FolderLock] = []

            def make_folder() -> None:
                with new_folder(folder, overwrite=overwrite) as temporary:
                    machine = describe_machine(config.device, processes=together.count)
                    write_config(temporary, {**described, **launched, "machine": machine})
                    own.append(held.enter_context(locked(temporary)))

            together.first(make_folder)
            return _learn(config, data, model, folder, own, as_json, together, until=until)


def resume(
    folder: Path,
    *,
    device: str | None = None,
    data_dir: str | None = None,
    accumulate: int | None = None,
    recompute_encoder: bool | None = None,
    as_json: bool = False,
    processes: Processes | None = None,
    until: int | None = None,
    trust: bool = False,
    **lengths: float | None,
) -> Model:
    """Goes on with an interrupted run, or with a finished one to a new length (steps, epochs or minutes).

    What is None stays as the run has it. With `trust` its data may be a Dataset that its config.json names, whose code
    is then run.
    """
    together: Processes
    with contextlib.ExitStack() as held:
        together = held.enter_context(joined()) if processes is None else processes
        together.first(lambda: check_can_go_on(folder))
        together.first(lambda: Run(folder).checked())
        own: list[FolderLock] = []

        def lock() -> None:
            own.append(held.enter_context(locked(folder)))

        together.first(lock)
        run = together.first(lambda: Run(folder).checked())  # what it is now that nobody else can change it
        if run.config.train is None:
            raise InputError(
                f"{folder} was saved without its training (no 'train' in config.json): it can't be resumed."
            )
        config = run.config.train
        refuse_import(config.data, folder / CONFIG, trust=trust, can_name=False)
        longer: dict[str, Any] = {name: value for name, value in lengths.items() if value is not None}
        if longer:
            config = dataclasses.replace(config, **{"steps": None, "epochs": None, "minutes": None, **longer})
        # For this time only: config.json goes on saying how the run was begun.
        here = dataclasses.replace(
            config,
            device=device or config.device,
            data_dir=data_dir or config.data_dir,
            accumulate=config.accumulate if accumulate is None else accumulate,
            recompute_encoder=config.recompute_encoder if recompute_encoder is None else recompute_encoder,
        )
        data = training_data(here, together)
        check_same_data(data, run.config.data, folder)
        model = new_model(here, data)
        if json.loads(json.dumps(to_config(model))) != run.config.model:
            raise InputError(
                f"{folder / 'config.json'} describes another network than its options and {data.name} give now: "
                "resume with the data and the version of gammacaps that it was started with."
            )
        # An older run says less of its data than is known now.
        facts = {**run.stored.get("data", {}), **describe(data)}
        described = {**run.stored, "train": dataclasses.asdict(config), "data": facts}
        return _learn(here, data, model, folder, own, as_json, together, described, until=until)


def _goes_on(folder: Path, config: TrainConfig) -> bool:
    """Whether this launch has made the run in this folder by the same command, which it now gives again."""
    name = launch().name
    if name is None or not is_run(folder):
        return False
    stored = Run(folder).config
    return stored.train == config and stored.launch == name


def _learn(
    config: TrainConfig,
    data: DataSet | StoredSet,
    model: Model,
    folder: Path,
    own: Sequence[FolderLock],
    as_json: bool,
    processes: Processes,
    described: dict[str, Any] | None = None,
    *,
    until: int | None = None,
) -> Model:
    """The loop: from wherever the folder's checkpoint stands to the end of training.

    `own` is the first process's lock of the folder. `described` is what config.json shall say of a run that goes on,
    once it is sure that it can.
    """

    def write(what: Callable[..., None], *values: Any) -> None:
        """Into the folder, if it is still the one that this training began in."""
        for lock in own:
            lock.check(folder)
        what(folder, *values)

    device = processes.each(lambda: own_device(config.device))
    model.to(device).train()
    on_gpu = device.type == "cuda"
    learner = Learner(
        model,
        torch.optim.Adam(model.parameters(), lr=config.lr, fused=on_gpu),
        {name: tensor.clone() for name, tensor in model.state_dict().items()} if config.ema else {},
    )
    checkpoint = processes.first(lambda: read_checkpoint(folder))
    if checkpoint is not None:
        put_back(checkpoint, learner)
    total = config.total_steps(len(data.labels))
    limit = None if config.minutes is None else 60 * config.minutes
    if _progress(learner, total, limit) >= 1:
        processes.first(lambda: write_weights(folder, learner.weights()))  # it may have been killed before
        raise Finished(f"{folder} is finished (step {learner.step}): give more --steps or --minutes to go on.")
    objective, size = Objective(config, model), min(config.batch, len(data.labels))
    sharing = Sharing(objective, size, processes, accumulate=config.accumulate, all_learn=objective.all_learn())

    def prepare() -> None:
        forget_metrics_after(folder, learner.step)
        if described is not None:
            write_config(folder, described)

    processes.first(prepare)
    if on_gpu and config.compile:
        compile_routing(model)
    if config.recompute_encoder:
        recompute_encoder(model)

    progress = Progress(total, limit, learner.step, as_json=as_json, bar=processes.rank == 0)
    board = board_writer()(folder / "tensorboard") if config.tensorboard and processes.rank == 0 else None
    before, started = learner.seconds, time.monotonic()
    coming = batches(data, config, sharing.own, device, learner.step)
    with _deterministic(), _stop_on_signal() as asked_to_stop, contextlib.closing(coming):
        try:
            while (done := _progress(learner, total, limit)) < 1 and (until is None or learner.step < until):
                images, labels = next(coming)
                losses, accuracy, attacked = take_step(config, learner, images, labels, done, sharing)
                learner.step += 1
                # One clock for all processes, or each would follow a schedule of its own.
                asked = len(asked_to_stop) + progress.unread
                learner.seconds, stop = processes.most(before + time.monotonic() - started, asked)
                progress.step()
                last = _progress(learner, total, limit) >= 1 or stop > 0 or learner.step == until
                log, save = (last or learner.step % every == 0 for every in (config.log_every, config.checkpoint_every))
                if log or save:
                    losses, accuracy = sharing.merged(losses, accuracy)
                    _refuse_nan(losses["loss"], learner, folder)
                if log:
                    row = {
                        "step": learner.step,
                        "seconds": round(learner.seconds, 3),
                        "accuracy": accuracy.item(),
                        **{name: value.item() for name, value in losses.items()},
                        "eps": radius(config, done) if config.robust else 0.0,
                        "lr": learning_rate(config, learner.step - 1, done),
                    }
                    processes.first(functools.partial(write, add_metrics, row))
                    if processes.rank == 0:
                        progress.metrics(row)
                    if board is not None:
                        for name, value in row.items():
                            board.add_scalar(name, value, learner.step)
                if save:
                    processes.first(functools.partial(write, _save, learner))
                    if board is not None:
                        add_pictures(board, learner, images[:8], attacked[:8], labels[:8])
                if stop and _progress(learner, total, limit) < 1:
                    why = ", since its output can't be written any more" if progress.unread else ""
                    raise Interrupted(
                        f"Stopped at step {learner.step}{why}, and saved; go on with: gammacaps train --resume {folder}"
                    )
        finally:
            progress.close()
            if board is not None:
                board.close()
    if learner.average:
        model.load_state_dict(learner.average)
    return model.eval()


def _save(folder: Path, learner: Learner) -> None:
    """The checkpoint first: killed before the weights are written, a run goes on from it, or has them made up for."""
    write_checkpoint(folder, learner)
    write_weights(folder, learner.weights())


def _progress(learner: Learner, total: int | None, limit: float | None) -> float:
    """How much of training is done, by whichever limit is nearer."""
    shares = [learner.step / total] if total is not None else []
    if limit is not None:
        shares.append(learner.seconds / limit)
    return max(shares)


@contextlib.contextmanager
def _deterministic() -> Iterator[None]:
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before


@contextlib.contextmanager
def _stop_on_signal() -> Iterator[list[int]]:
    """A list that fills when a signal asks to stop after this step; a second one stops at once.

    SIGINT is Ctrl-C, SIGTERM what `kill` and cluster managers send, SIGHUP a terminal that was closed; under `nohup`
    the last is ignored, and stays so.
    """
    asked: list[int] = []
    wanted = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        wanted.append(signal.SIGHUP)

    def ask(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = {number: signal.signal(number, ask) for number in wanted}
    except ValueError:  # not in the main thread, where signals can't be caught
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_nan(loss: Tensor, learner: Learner, folder: Path) -> None:
    """Stops before a state that is not a number replaces the last good one."""
    weights: list[Tensor] = list(learner.model.parameters())
    if torch.isfinite(loss) and torch.isfinite(torch.stack(torch._foreach_norm(weights))).all():
        return
    kept = folder / CHECKPOINT
    where = f"the last good checkpoint is {kept}" if kept.exists() else "there was no checkpoint yet"
    raise InputError(
        f"Training became NaN or infinite by step {learner.step}, and {where}: train again with a lower --lr."
    )
