"""Evaluates one run after the other, at one radius where they are compared, and draws their curves together."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gammacaps.distributed.processes import Processes
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.run import FOLDER, evaluate_run, results_file
from gammacaps.runs.folders import run_folders
from gammacaps.runs.run import Run, common_radius

SWEEP = "sweep.png"  # in the first run's folder


@contextlib.contextmanager
def evaluation_folders(
    names: Sequence[Path], config: EvaluateConfig, processes: Processes
) -> Iterator[tuple[Path, ...]]:
    """Where the networks' figures go, as in `run_folders`."""
    files = (results_file(config.norm), *([SWEEP] if config.sweep else []))
    # The first process alone touches the runs' folders, which other machines need not see; what it says all must hear.
    with contextlib.ExitStack() as held:
        yield processes.first(lambda: held.enter_context(run_folders(names, files, FOLDER, figures=True)))


def evaluate_runs(
    folders: Sequence[Path], config: EvaluateConfig, *, quiet: bool, processes: Processes
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each run's folder and its figures, as soon as they are there."""
    # In other norms the usual radius is that of the data, which runs that are compared share.
    if len(folders) > 1 and config.eps is None and config.attacks != ("paper",) and config.norm == "linf":
        eps = processes.first(lambda: common_radius([Run(folder) for folder in folders]))
        config = dataclasses.replace(config, eps=(eps,))
    results = []
    for folder in folders:
        results.append(evaluate_run(folder, config, quiet=quiet, processes=processes))
        yield folder, results[-1]
    if config.sweep:
        from gammacaps.evaluation.curve import draw_curves  # matplotlib, which takes a second

        processes.first(lambda: draw_curves(results, folders[0] / SWEEP))
