"""Training: on clean images, or under attack, so that every weight learns from the worst image near each image.

From a configuration, or from the folder of a run that goes on, to the loop, and to what watches it.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gammacaps.data import DataSet, StoredSet
from gammacaps.distributed.launch import launch
from gammacaps.distributed.processes import Processes, joined, own_device
from gammacaps.environment import describe_machine
from gammacaps.errors import InputError
from gammacaps.models import Model, load, to_config
from gammacaps.models.folder import CONFIG, is_run, naming, write_config, write_weights
from gammacaps.progress import say
from gammacaps.runs.metrics import forget_metrics_after
from gammacaps.runs.run import Run, refuse_import
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.warnings import forget_warnings_after
from gammacaps.training.batches import batches
from gammacaps.training.board import Board, board_writer
from gammacaps.training.checkpoint import check_can_go_on, put_back, read_checkpoint
from gammacaps.training.class_sets import ClassSets, class_sets
from gammacaps.training.data import check_same_data, describe, open_split, training_data
from gammacaps.training.execution import deterministic, recompute_encoder
from gammacaps.training.held_back import split_off
from gammacaps.training.held_folder import HeldFolder
from gammacaps.training.learner import Learner, new_learner
from gammacaps.training.loop import take_steps
from gammacaps.training.new_model import new_model, stored_model
from gammacaps.training.recorded_losses import recorded_losses
from gammacaps.training.schedule import Length
from gammacaps.training.sharing import Sharing, parts_of
from gammacaps.training.signals import StopRequests, noted_signals
from gammacaps.training.step import Objective
from gammacaps.training.validation import Validation
from gammacaps.training.warn import AtChance, Overlearned
from gammacaps.training.watch import Checkpoints, Log, RefuseNaN, StopWhenAsked, TrainingDisplay, Watcher


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
    warn: bool = True,
) -> Model:
    """Trains a new network into a new run's folder, with all processes that torchrun started unless told otherwise.

    To its end, or `until` a step from where it can be resumed. With `warn` it says what is odd about the data, and
    whether the network learns nothing, or learns its images by heart.
    """
    with joined() if processes is None else contextlib.nullcontext(processes) as together:
        if together.first(lambda: _goes_on(folder, config)):
            try:
                return resume(folder, as_json=as_json, processes=together, until=until, trust=True)
            except Finished:
                return together.first(lambda: load(folder))
        data = training_data(config, together)
        if warn and together.rank == 0 and isinstance(data, DataSet):
            for note in data.notes:
                say(f"Note: {note}")
        facts = describe(data)
        data, held_back = split_off(data, config)
        model = new_model(config, data)
        # What can't be used is said before a folder is made.
        together.each(lambda: own_device(config.device))
        parts_of(min(config.batch, len(data.labels)), together, config.accumulate)
        if config.tensorboard:
            board_writer()
        sets: ClassSets = together.first(lambda: class_sets(model, data)) if config.gamma_weight() else {}
        described = {"model": to_config(model), "train": dataclasses.asdict(config), "data": facts}
        if sets:
            described["class_sets"] = sets
        launched = {"launch": launch().name} if launch().name else {}  # by which a restart knows its own run
        machine = describe_machine(config.device, processes=together.count)
        with HeldFolder(folder, together) as held:
            held.make({**described, **launched, "machine": machine}, overwrite=overwrite)
            return _learn(config, data, model, held, sets, held_back, as_json=as_json, until=until, warn=warn)


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
    joining = joined() if processes is None else contextlib.nullcontext(processes)
    with joining as together, HeldFolder(folder, together) as held:
        together.first(lambda: check_can_go_on(folder))
        together.first(lambda: Run(folder).checked())
        held.take()
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
        described = run.stored_with(train=dataclasses.asdict(config), data=describe(data))
        data, held_back = split_off(data, here)
        with naming(folder / CONFIG):
            model = stored_model(run.config.model, here, data)
        sets = run.config.class_sets
        return _learn(here, data, model, held, sets, held_back, as_json=as_json, until=until, described=described)


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
    held: HeldFolder,
    sets: ClassSets,
    held_back: DataSet | StoredSet | None,
    *,
    as_json: bool,
    until: int | None,
    warn: bool = True,
    described: dict[str, Any] | None = None,
) -> Model:
    """From wherever the folder's checkpoint stands to the end of training.

    `described` is what config.json shall say of a run that goes on, once it is sure that it can.
    """
    processes, folder = held.processes, held.path
    device = processes.each(lambda: own_device(config.device))
    model.to(device).train()
    learner = new_learner(config, model, device)
    checkpoint = processes.first(lambda: read_checkpoint(folder))
    if checkpoint is not None:
        put_back(checkpoint, learner)
    seconds = None if config.minutes is None else 60 * config.minutes
    length = Length(config.total_steps(len(data.labels)), seconds, until)
    if length.share(learner) >= 1:
        held.write(write_weights, learner.kept())  # it may have been killed before
        raise Finished(f"{folder} is finished (step {learner.step}): give more --steps or --minutes to go on.")
    objective, size = Objective(config, model, sets).to(device), min(config.batch, len(data.labels))
    sharing = Sharing(
        objective,
        size,
        processes,
        accumulate=config.accumulate,
        all_learn=objective.all_learn(),
        recorded=recorded_losses(objective, model, device) if not config.recompute_encoder else None,
    )
    held.write(forget_metrics_after, learner.step)
    held.write(forget_warnings_after, learner.step)
    if described is not None:
        held.write(write_config, described)
    if device.type == "cuda" and config.compile:
        model.compile_routing()
    if config.recompute_encoder:
        recompute_encoder(model)

    requests = StopRequests()
    watchers = _watchers(config, learner, held, length, requests, held_back, as_json=as_json)
    if warn:  # before the last, which stops
        others = (lambda: open_split(config, "test")) if held_back is None else (lambda: held_back)
        at_chance = AtChance(held, length, data.labels, data.class_names)
        watchers[-1:-1] = [at_chance, Overlearned(held, length, data, others)]
    coming = batches(data, config, sharing.own, device, learner.step)
    with deterministic(), noted_signals(requests), contextlib.closing(coming), _closed(watchers):
        take_steps(config, learner, coming, sharing, length, requests, watchers)
    model.load_state_dict(learner.kept())
    return model.eval()


def _watchers(
    config: TrainConfig,
    learner: Learner,
    held: HeldFolder,
    length: Length,
    requests: StopRequests,
    held_back: DataSet | StoredSet | None,
    *,
    as_json: bool,
) -> list[Watcher]:
    """In the order in which they are told of a step; the first process shows what all have done."""
    first = held.processes.rank == 0
    return [
        RefuseNaN(held.path),
        *([] if held_back is None else [Validation(held_back, length)]),
        Log(held),
        *([TrainingDisplay(length, learner, requests, as_json=as_json)] if first else []),
        Checkpoints(held),
        *([Board(held.path)] if first and config.tensorboard else []),
        StopWhenAsked(held.path, requests),
    ]


@contextlib.contextmanager
def _closed(watchers: Sequence[Watcher]) -> Iterator[None]:
    with contextlib.ExitStack() as closing:
        for watcher in reversed(watchers):
            closing.callback(watcher.close)
        yield
