"""How to make it all again: commands, versions, seeds."""

import os
import shlex
from dataclasses import dataclass
from html import escape

from gammacaps.auditing.config import AuditConfig
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.imports import PLUGINS
from gammacaps.reporting.command_line import options
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.content import Fact
from gammacaps.reporting.markup import facts, paragraphs
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study

CLOCK = (
    ". It was trained for a set time, and the schedule follows the clock: this gives other weights and other figures"
)


@dataclass(frozen=True)
class Command:
    """A line for the shell and what it does."""

    line: str
    does: str


@dataclass(frozen=True)
class Rerun:
    commands: tuple[Command, ...] = ()
    versions: tuple[Fact, ...] = ()


def collect(study: Study) -> Rerun:
    return Rerun(commands(study), versions(study))


def commands(study: Study) -> tuple[Command, ...]:
    run = shlex.quote(str(study.run))
    shown = []
    training = study.about.train
    if training is not None:
        again = shlex.quote(f"{study.run}-again")
        line = f"gammacaps train --config {shlex.quote(f'{study.run}/config.json')} --out {again}"
        shown.append(Command(line, "Train it again, with the same options" + (CLOCK if training.minutes else "")))
    if study.results is not None:
        changed = options(study.results["settings"], vars(EvaluateConfig()))
        shown.append(Command(f"gammacaps evaluate {run}{changed}", "Measure it"))
    if study.audit is not None:
        changed = options(study.audit["settings"], vars(AuditConfig()))
        shown.append(Command(f"gammacaps audit {run}{changed}", "Hold it against the paper's definitions"))
    starts, steps = study.made
    made = {"starts": starts, "steps": steps} if study.capsules else {}
    changed = options(vars(study.config) | made, vars(ReportConfig()))
    runs = " ".join(shlex.quote(str(one)) for one in study.runs or (study.run,))
    shown.append(Command(f"gammacaps report {runs}{changed}", "Look into it, and make this page"))
    plugins = os.environ.get(PLUGINS)  # without which the commands would not know a rule or an attack of the user's own
    if plugins:
        shown = [Command(f"{PLUGINS}={shlex.quote(plugins)} {command.line}", command.does) for command in shown]
    return tuple(shown)


def versions(study: Study) -> tuple[Fact, ...]:
    training, machine = study.about.train, study.machine
    shown = [Fact(name, str(machine[name])) for name in ("gammacaps", "torch", "python")]
    shown.append(Fact("Device", machine["device_name"]))
    if training is not None:
        shown.append(Fact("Seed of training", str(training.seed)))
    if study.results is not None:
        shown.append(Fact("Seed of the attacks", str(study.results["settings"].get("seed", 0))))
    starts, steps = study.made
    if study.capsules:
        shown.append(
            Fact(
                "Generated inputs",
                f"{starts} starts, {steps} steps",
                f"search: {study.config.search}, seed {study.config.seed}; the paper's: 60 and 1,000",
            )
        )
        shown.append(
            Fact(
                "Price on brightness",
                f"{study.config.class_penalty:g} for classes, {study.config.hidden_penalty:g} for hidden capsules",
                "the paper's: 0 and 1e-05",
            )
        )
    return tuple(shown)


def draw(shown: Rerun) -> str:
    lines = "".join(
        f'<li><p>{escape(command.does)}</p><pre tabindex="0"><code>{escape(command.line)}</code></pre></li>'
        for command in shown.commands
    )
    intro = paragraphs(
        "Everything on this page was made by these commands. With the same versions, the same seeds and the same "
        "kind of device the figures come out the same, unless a line says otherwise."
    )
    body = f'{intro}<ol class="commands">{lines}</ol>' if lines else ""
    return body + facts(shown.versions)


RERUN = Section("rerun", "Do it again", collect, draw)
