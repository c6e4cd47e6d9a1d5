"""How to make it all again: commands, versions, seeds."""

import shlex
from typing import Any

from gammacaps.audit.config import AuditConfig
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.report.collect import Collected
from gammacaps.report.config import ReportConfig
from gammacaps.report.content import Command, Fact

CLOCK = (
    ". It was trained for a set time, and the schedule follows the clock: this gives other weights and other figures"
)


def commands(found: Collected) -> tuple[Command, ...]:
    run = shlex.quote(str(found.run))
    shown = []
    training = found.about.train
    if training is not None:
        again = shlex.quote(f"{found.run}-again")
        line = f"gammacaps train --config {shlex.quote(f'{found.run}/config.json')} --out {again}"
        shown.append(Command(line, "Train it again, with the same options" + (CLOCK if training.minutes else "")))
    if found.results is not None:
        changed = options(found.results["settings"], vars(EvaluateConfig()))
        shown.append(Command(f"gammacaps evaluate {run}{changed}", "Measure it"))
    if found.audit is not None:
        changed = options(found.audit["settings"], vars(AuditConfig()))
        shown.append(Command(f"gammacaps audit {run}{changed}", "Hold it against the paper's definitions"))
    starts, steps = found.made
    made = {"starts": starts, "steps": steps} if found.capsules else {}
    changed = options(vars(found.config) | made, vars(ReportConfig()))
    shown.append(Command(f"gammacaps report {run}{changed}", "Look into it, and make this page"))
    return tuple(shown)


def options(values: dict[str, Any], defaults: dict[str, Any]) -> str:
    """The options of a command that differ from its defaults, as they are written."""
    line = ""
    for name, value in values.items():
        given = tuple(value) if isinstance(value, list) else value
        if name not in defaults or given == defaults[name]:
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(given, bool):
            line += f" {flag}" if given else f" --no-{flag[2:]}"
        else:
            words = given if isinstance(given, tuple) else (given,)
            line += f" {flag} " + " ".join(shlex.quote(str(w)) for w in words)
    return line


def versions(found: Collected) -> tuple[Fact, ...]:
    training, machine = found.about.train, found.machine
    shown = [Fact(name, str(machine[name])) for name in ("gammacaps", "torch", "python")]
    shown.append(Fact("Device", machine["device_name"]))
    if training is not None:
        shown.append(Fact("Seed of training", str(training.seed)))
    if found.results is not None:
        shown.append(Fact("Seed of the attacks", str(found.results["settings"].get("seed", 0))))
    starts, steps = found.made
    if found.capsules:
        shown.append(
            Fact(
                "Generated inputs",
                f"{starts} starts, {steps} steps",
                f"seed {found.config.seed}; the paper's: 60 and 1,000",
            )
        )
        shown.append(
            Fact(
                "Price on brightness",
                f"{found.config.class_penalty:g} for classes, {found.config.hidden_penalty:g} for hidden capsules",
                "the paper's: 0 and 1e-05",
            )
        )
    return tuple(shown)
