"""The verbs of the command line as functions: its options are their keywords, what it writes is their answer."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from gammacaps.attacks.gradient import Classifier
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.several import audit_runs
from gammacaps.beyond.run import beyond_runs
from gammacaps.data.checks import check_images, check_labels
from gammacaps.distributed.processes import joined
from gammacaps.errors import InputError, check_choice
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.several import evaluate_runs
from gammacaps.face.check import checked
from gammacaps.face.figures import Audit, Check, Evaluation
from gammacaps.face.given import as_labels
from gammacaps.models import Model
from gammacaps.options_help import with_options
from gammacaps.progress import Progress
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.run import report_networks
from gammacaps.runs.run import EPS
from gammacaps.runs.train_config import TrainConfig
from gammacaps.runs.typed_json import Misfit, read_as
from gammacaps.training.train import train as train_run

OF_DATA = ("data", "data_dir", "trust", "limit", "device", "beyond", "unseen")  # of a run's evaluation alone
Config = TypeVar("Config", TrainConfig, EvaluateConfig, AuditConfig, ReportConfig)


@with_options(TrainConfig, but=("data",))
def train(
    data: str = "fashion-mini", *, out: str | Path | None = None, overwrite: bool = False, **options: Any
) -> Model:
    """Trains a network into a run's folder, as `gammacaps train`, and gives it ready to use.

    Args:
        data: a data set's name, or a path to your own.
        out: the run's folder; without it one named by the options, under runs/.
        overwrite: replace that folder if it is there.
        options: those of `gammacaps train`, listed below, such as preset="small", eps=0.1, minutes=2.

    >>> import gammacaps
    >>> model = gammacaps.train("fashion-mini", preset="small", steps=2, robust=False, out="runs/first")
    >>> model.classes
    10
    """
    config = _configured(TrainConfig, {"data": data, **options})
    folder = Path("runs") / config.run_name() if out is None else _path(out, "A run's folder")
    return train_run(config, folder, overwrite=overwrite)


@with_options(EvaluateConfig)
def evaluate(run: str | Path, *, quiet: bool = False, **options: Any) -> dict[str, Any]:
    """Measures a run as `gammacaps evaluate` does: its results.json, which is also written into the run's folder.

    With beyond=True it is beyond.json: other norms, turns, bad pictures, things it has never seen.

    Args:
        run: a run's folder, or the name of a network that comes with gammacaps: its own figures stay, and these go to
            a copy of it, such as runs/mnist-own.
        quiet: show no progress.
        options: those of `gammacaps evaluate`, listed below, such as attacks="strong", eps=0.1, limit=100.

    >>> import gammacaps
    >>> results = gammacaps.evaluate("fashion-mini", attacks="fgsm", limit=20, checks=False, quiet=True)
    >>> sorted(results["clean"])
    ['accuracy', 'correct', 'images', 'interval']
    >>> [row["attack"] for row in results["attacks"]]
    ['fgsm']
    """
    config = _configured(EvaluateConfig, options)
    if config.beyond:
        ((_, results),) = beyond_runs((_path(run, "A run"),), config, quiet=quiet)
        return results
    with joined() as processes:
        ((_, results),) = evaluate_runs((_path(run, "A run"),), config, quiet=quiet, processes=processes)
    return Evaluation(results)


@with_options(AuditConfig)
def audit(run: str | Path, *, quiet: bool = False, **options: Any) -> Audit:
    """Says which capsules of a run are gamma-capsules, as `gammacaps audit`: its audit.json, which is also written.

    Args:
        run: a run's folder, or the name of a network that comes with gammacaps: its own figures stay, and these go to
            a copy of it, such as runs/mnist-own.
        quiet: show no progress.
        options: those of `gammacaps audit`, listed below, such as eps=0.1, limit=100, tau=0.5.

    >>> import gammacaps
    >>> figures = gammacaps.audit("fashion-mini", limit=10, attack_steps=2, quiet=True)
    >>> [layer["layer"] for layer in figures["layers"]]
    ['hidden 1']
    """
    config = _configured(AuditConfig, options)
    ((_, results),) = audit_runs((_path(run, "A run"),), config, quiet=quiet)
    return Audit(results)


@with_options(ReportConfig)
def report(run: str | Path, other: str | Path | None = None, **options: Any) -> Path:
    """Writes the page that shows a run, as `gammacaps report`, and gives its path.

    Args:
        run: a run's folder, or the name of a network that comes with gammacaps, which is then copied to runs/.
        other: another, to show both side by side.
        options: those of `gammacaps report`, listed below, such as starts=5, steps=50, trees=2.

    >>> import gammacaps
    >>> gammacaps.report("fashion-mini", starts=1, steps=1, capsules=1, trees=1, images=20).name
    'report.html'
    """
    config = _configured(ReportConfig, options)
    runs = (run,) if other is None else (run, other)
    return report_networks([_path(each, "A run") for each in runs], config)


@with_options(EvaluateConfig, but=("eps", "attacks", *OF_DATA))
def check(
    model: nn.Module | Classifier,
    images: Tensor,
    labels: Tensor | Sequence[int] | np.ndarray,
    *,
    eps: float | Sequence[float] = EPS,
    attacks: str | Sequence[str] = "quick",
    other: Classifier | None = None,
    quiet: bool = False,
    **options: Any,
) -> Check:
    """How robust any torch classifier is: clean, under each attack, in the worst case, and whether to believe it.

    What it gives prints as a short table, shows itself in a notebook, and has `write_page("check.html")`.

    Args:
        model: gives scores (B, N) for images (B, C, H, W) in [0, 1]; it need have no capsules. One that wants
            normalised images is given as `gammacaps.Normalized(model, mean, std)`.
        images: floats (M, C, H, W) in [0, 1].
        labels: the class number of each, in a tensor, a list or an array.
        eps: the attacks' radius in L-inf, or several; often 8/255 for photos.
        attacks: "quick" takes some 20 seconds for a small network; "standard" and "strong" (with AutoAttack) try
            harder; or names of attacks.
        other: a network for the same task, which the attack "transfer" is made on.
        quiet: show no progress.
        options: those of `gammacaps evaluate` that are not about data or device, such as batch=100, checks=False.

    >>> import gammacaps
    >>> from torch import nn
    >>> images, labels = gammacaps.load_data("fashion-mini")
    >>> mine = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))
    >>> found = gammacaps.check(mine, images[:20], labels[:20], eps=8 / 255, attacks=("fgsm", "pgd"), checks=False)
    >>> [(row["attack"], row["images"]) for row in found["attacks"]]
    [('fgsm', 20), ('pgd', 20)]
    >>> found.worst <= found.clean
    True
    """
    if not callable(model):
        raise InputError(f"A classifier is a network or a function of images, not a {type(model).__name__}.")
    if isinstance(model, type):
        raise InputError(f"A classifier is a network, not its class: give {model.__name__}(...).")
    check_images(images)
    labels = as_labels(labels)
    check_labels(labels, len(images))
    for name in options:
        if name in OF_DATA:
            raise InputError(f"check takes no {name}: it measures the model, where it is, on the images given.")
    # A step that follows the radius: the paper's 0.01 is for its own tables.
    given = {"eps": eps, "attacks": attacks, "attack_step": None, **options}
    config = _configured(EvaluateConfig, given, but=OF_DATA)
    return checked(model, images, labels, config, other=other, progress=Progress(quiet=quiet))


robustness = check  # by its earlier name


def _configured(kind: type[Config], options: dict[str, Any], *, but: tuple[str, ...] = ()) -> Config:
    """The options of a verb, each checked, `but` those that it does not take; one value may stand for a list of one."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in options:
        check_choice("option", name, (known for known in fields if known not in but))
    several = {name for name, field in fields.items() if str(field.type).startswith("tuple")}
    try:
        return read_as(kind, {name: _plain(value, name in several) for name, value in options.items()})
    except Misfit as error:
        raise InputError(f"{error}.") from None


def _plain(value: Any, several: bool) -> Any:
    """A value as a file would have it."""
    if isinstance(value, Path):
        return str(value)
    if not several or value is None:
        return value
    return list(value) if isinstance(value, list | tuple) else [value]


def _path(value: Any, what: str) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{what} is named by its path, not by a {type(value).__name__}.")
    return Path(value)
