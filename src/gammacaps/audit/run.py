"""Audits a run's folder and writes its audit.json and the two curves."""

import dataclasses
from pathlib import Path
from typing import Any

from gammacaps.audit.audit import audit
from gammacaps.audit.config import AuditConfig
from gammacaps.audit.picture import over_eps, over_tau
from gammacaps.data import load_set
from gammacaps.evaluation.run import data_name, radius_of, trained_steps
from gammacaps.evaluation.store import identity
from gammacaps.files import write_figure, write_json
from gammacaps.lines import Lines
from gammacaps.models import load
from gammacaps.models.stored import read_config


def audit_run(run: Path, config: AuditConfig, *, quiet: bool = False) -> dict[str, Any]:
    """The audit of a run, on the data and within the radius it was trained with unless the configuration says other."""
    stored = read_config(run)
    training = stored.get("train", {})
    name = data_name(run, stored, config.data)
    data = load_set(name, "test", data_dir=config.data_dir or training.get("data_dir"), size=training.get("size"))
    if not config.eps and (eps := radius_of(training)) is not None:
        config = dataclasses.replace(config, eps=(eps / 2, eps))
    about = {"run": str(run), "model": stored["model"], "trained_under_attack": training.get("robust")}
    model = load(run)
    about |= {"weights": identity(model), "trained_steps": trained_steps(run)}
    results = {**about, **audit(model, data, config, Lines(quiet, "pairs of image and capsule"))}
    write_json(run / "audit.json", results)
    write_figure(run / "audit-eps.png", over_eps([results]))
    write_figure(run / "audit-tau.png", over_tau([results]))
    return results
