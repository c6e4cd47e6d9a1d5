"""Audits a run's folder and writes its audit.json and the two curves."""

import dataclasses
from pathlib import Path
from typing import Any

from gammacaps.auditing.audit import audit
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.curves import over_eps, over_tau
from gammacaps.evaluation.identity import identity
from gammacaps.files import write_figure, write_json
from gammacaps.progress import Progress, say
from gammacaps.runs.chosen_by import chosen_by
from gammacaps.runs.run import AUDIT, Run

OVER_EPS, OVER_TAU = "audit-eps.png", "audit-tau.png"  # the curves


def audit_run(run: Path, config: AuditConfig, *, quiet: bool = False) -> dict[str, Any]:
    """The audit of a run, on the data and within the radius it was trained with unless the configuration says other."""
    of = Run(run)
    train = of.config.train
    data = of.load_data("test", config.data, data_dir=config.data_dir, trust=config.trust)
    if note := chosen_by(train, data.name):
        say(f"Note: {note}")
    if not config.eps and of.radius is not None:
        config = dataclasses.replace(config, eps=(of.radius / 2, of.radius))
    model = of.model()
    about = {
        "run": str(run),
        "model": of.config.model,
        "trained_under_attack": train.robust if train else None,
        "weights": identity(model),
        "trained_steps": of.steps,
    }
    results = {**about, **audit(model, data, config, Progress("pairs of image and capsule", quiet=quiet))}
    write_json(run / AUDIT, results)
    write_figure(run / OVER_EPS, over_eps([results]))
    write_figure(run / OVER_TAU, over_tau([results]))
    return results
