"""A start from end to end: look at the pictures, plan, train two networks, measure them, compare them on a page."""

import contextlib
import dataclasses
import shlex
import time
import webbrowser
from pathlib import Path

import torch

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import audit_run
from gammacaps.data import StoredSet, open_set, store_batches
from gammacaps.data.checks import width_by_height
from gammacaps.data.npy_folder import is_stored
from gammacaps.environment import pick_device
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import evaluate_run
from gammacaps.files import write_whole
from gammacaps.models.folder import is_run
from gammacaps.program import command
from gammacaps.progress import Progress, say
from gammacaps.radius import radius
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.run import SIDE_BY_SIDE, report_runs
from gammacaps.start.config import StartConfig
from gammacaps.start.outcome import NAMES, outcome
from gammacaps.start.output import CLEAN, DATA, LIST, ROBUST, State, fingerprint, taken, write_state
from gammacaps.start.pictures import changes, images_of, look, target_size
from gammacaps.start.plan import LONGEST, Plan, choose, make_plan, training_config
from gammacaps.training.train import Finished, resume, train

SEEN = 500  # pictures by which the radius is chosen
# Small enough that measuring and drawing take about as long as a training.
EVALUATION = EvaluateConfig(attacks=("quick",), attack_step=None, limit=200)
AUDIT = AuditConfig(limit=60)
REPORT = ReportConfig(images=300, starts=8, steps=100)


def start(
    folder: Path,
    config: StartConfig,
    out: Path | None = None,
    *,
    show: bool = False,
    evaluation: EvaluateConfig | None = None,
    audit: AuditConfig | None = None,
    report: ReportConfig | None = None,
) -> str:
    """What came out, in words; all else lies in the output folder. The same call goes on where one was interrupted."""
    started = time.monotonic()
    folder = folder.expanduser()
    if not folder.is_dir() or is_stored(folder):
        raise InputError(f"There is no folder of pictures {folder}: give one that has a sub-folder for each class.")
    device = pick_device(config.device)
    out = out or Path("runs") / f"{folder.resolve().name}-start"
    again = f"Stopped. The same command goes on where it was: what is done lies in {out}."
    try:
        with taken(folder, out, config) as state:
            data = _pictures(folder, out, config, state, device)
            plan = _plan(out, config, state, data, device)
            for place, name in enumerate((CLEAN, ROBUST)):
                say(f"{3 + place}/5 Training a network {_how(name, plan)} for {plan.steps:,} steps ...")
                _train(out, name, config, plan, device)
            say("5/5 Measuring both, and drawing what their capsules see ...")
            page = _measured(
                out, folder.resolve().name, plan, config, evaluation or EVALUATION, audit or AUDIT, report or REPORT
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(again) from None
    if show:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(page.resolve().as_uri())
    runs = shlex.join([str(out / ROBUST), str(out / CLEAN)])
    words = [outcome(out, plan.eps), "", f"Both side by side, to open in a browser: {page}"]
    words += [f"To play with them: {command(f'explore {runs}')}", f"This took {time.monotonic() - started:.0f} s."]
    return "\n".join(words)


def _pictures(folder: Path, out: Path, config: StartConfig, state: State, device: torch.device) -> StoredSet:
    """The pictures as the network takes them, in a folder of our own, so that they stay what they were."""
    stored = out / DATA
    if stored.exists():
        say(f"1/5 Going on in {out}, with the pictures as they were read before.")
        if fingerprint(folder) != state.pictures:
            say(f"Note: {folder} has changed since; for what is there now, choose another folder with --out.")
    else:
        say(f"1/5 Looking at the pictures in {folder} ...")
        progress = Progress("pictures")
        pictures = look(folder, config.seed, progress)
        progress.close()
        size = target_size(pictures, LONGEST[device.type], config.size)
        notes = [*pictures.notes, *changes(pictures, size, config.crop)]
        listed = [f"Left out: {each}" for each in pictures.skipped] + notes
        write_whole(out / LIST, "".join(f"{line}\n" for line in listed).encode(errors="backslashreplace"))
        for note in notes:
            say(f"  {note}")
        parts = {"train": pictures.train, "test": pictures.test}
        batches = {name: images_of(each, pictures.grey, size, config.crop) for name, each in parts.items()}
        store_batches(stored, pictures.class_names, **batches)
        kind = "grey" if pictures.grey else "colour"
        counts = f"{len(pictures.train):,} to train on, {len(pictures.test):,} held back for testing"
        classes = f"{len(pictures.class_names)} classes"
        say(f"  {counts}; {classes}; {kind}, {width_by_height(size[::-1])} pixels.")
    data = open_set(stored, "train")
    assert isinstance(data, StoredSet)
    return data


def _plan(out: Path, config: StartConfig, state: State, data: StoredSet, device: torch.device) -> Plan:
    """The plan that was begun with, or a new one, which is told and kept."""
    if state.plan is not None:
        return state.plan
    say("2/5 Choosing the network and timing some steps on this machine ...")
    choice = choose(config, device, data.images[:SEEN])
    say(f"  Network: {choice.preset} ({choice.why_preset}). Attack: eps {radius(choice.eps)} ({choice.why_eps}).")
    plan = make_plan(config, data, str(out / DATA), choice, device)
    for note in plan.notes:
        say(f"  Note: {note}")
    both = plan.clean_seconds + plan.robust_seconds
    say(
        f"  {plan.steps:,} steps for each network: about {_clock(plan.clean_seconds)} on clean pictures and "
        f"{_clock(plan.robust_seconds)} under attack, {_clock(both)} together; then some minutes to measure and draw."
    )
    write_state(out, dataclasses.replace(state, plan=plan))
    return plan


def _train(out: Path, name: str, config: StartConfig, plan: Plan, device: torch.device) -> None:
    """A new training, or one that goes on; nothing where it is finished."""
    if is_run(out / name):
        with contextlib.suppress(Finished):
            resume(out / name)
        return
    train(training_config(config, str(out / DATA), plan, device, robust=name == ROBUST), out / name)


def _measured(
    out: Path,
    called: str,
    plan: Plan,
    config: StartConfig,
    evaluation: EvaluateConfig,
    audit: AuditConfig,
    report: ReportConfig,
) -> Path:
    """The page about both, with all figures; what is there already is not made again.

    `called` is the name of the user's folder, for its title.
    """
    page = out / ROBUST / SIDE_BY_SIDE
    if page.exists():
        return page
    for name in NAMES:
        evaluate_run(out / name, dataclasses.replace(evaluation, eps=(plan.eps,), device=config.device))
        audit_run(out / name, dataclasses.replace(audit, eps=(plan.eps,), device=config.device))
    options = dataclasses.replace(report, eps=plan.eps, device=config.device)
    return report_runs((out / ROBUST, out / CLEAN), options, called=called)


def _how(name: str, plan: Plan) -> str:
    return "on clean pictures" if name == CLEAN else f"under attack (eps {radius(plan.eps)})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d} minutes" if minutes else f"{rest} s"
