"""Audits one run after the other, at one radius where they are compared."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.run import OVER_EPS, OVER_TAU, audit_run
from gammacaps.runs.folders import run_folders
from gammacaps.runs.run import AUDIT, Run, common_radius


def audit_folders(names: Sequence[Path]) -> contextlib.AbstractContextManager[tuple[Path, ...]]:
    """Where the networks' figures go, as in `run_folders`."""
    return run_folders(names, (AUDIT, OVER_EPS, OVER_TAU), figures=True)


def audit_runs(folders: Sequence[Path], config: AuditConfig, *, quiet: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each run's folder and its figures, as soon as they are there."""
    if len(folders) > 1 and not config.eps:
        eps = common_radius([Run(folder) for folder in folders])
        config = dataclasses.replace(config, eps=(eps / 2, eps))
    for folder in folders:
        yield folder, audit_run(folder, config, quiet=quiet)
