"""A run's page, and its pictures as files: `gammacaps report RUN` and `gammacaps explain RUN`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import check_can_write, write_json, write_whole
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.explanation import NAMES, files_of
from gammacaps.reporting.page import compose, render
from gammacaps.reporting.study import open_pair, open_study
from gammacaps.runs.folders import run_folders

PAGE, SIDE_BY_SIDE, FOLDER = "report.html", "side-by-side.html", "explain"


def report_run(run: Path, config: ReportConfig) -> Path:
    """Looks into a run and writes its report.html; the page's path."""
    page = render(compose(open_study(run, config)))
    write_whole(run / PAGE, page.encode(errors="backslashreplace"))  # names of files
    return run / PAGE


def report_runs(runs: Sequence[Path], config: ReportConfig, *, called: str = "") -> Path:
    """The page of one run, or of two side by side: the latter is the first run's side-by-side.html.

    `called` is what their images are called in its title, where the data set's own name says little.
    """
    if len(runs) == 1:
        return report_run(runs[0], config)
    pages = [compose(study) for study in open_pair(runs, config)]
    page = render(*(replace(page, data=called or page.data) for page in pages))
    write_whole(runs[0] / SIDE_BY_SIDE, page.encode(errors="backslashreplace"))
    return runs[0] / SIDE_BY_SIDE


def report_networks(names: Sequence[Path], config: ReportConfig) -> Path:
    """`report_runs` of runs' folders, or of networks that come with gammacaps by their names."""
    if len(names) > 2:
        raise InputError(f"A report is about one network, or about two side by side, not {len(names)}: name fewer.")
    with run_folders(names) as folders:
        check_can_write(folders[0], (PAGE if len(folders) == 1 else SIDE_BY_SIDE,))
        return report_runs(folders, config)


def explain_run(run: Path, config: ReportConfig) -> Path:
    """Looks into a run and writes its pictures and figures as files into RUN/explain; the folder's path.

    Those of an earlier explanation go; other files that lie there stay.
    """
    check_can_write(run, inner=FOLDER)
    files = files_of(open_study(run, config))
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} can't be made a folder ({error.strerror}): move what is there.") from None
    for name, content in files.items():
        if isinstance(content, bytes):
            write_whole(folder / name, content)
        else:
            write_json(folder / name, content)
    for path in folder.iterdir():
        if NAMES.fullmatch(path.name) and path.name not in files:
            path.unlink()
    return folder
