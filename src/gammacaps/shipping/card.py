"""A shipped network's card, README.md: made from its files of figures, never written by hand."""

import shutil
from pathlib import Path
from typing import Any

from gammacaps.beyond.table import main_rows
from gammacaps.data.named_sets import credit, research_only
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.interval import with_interval
from gammacaps.evaluation.table import attack_name, shown
from gammacaps.files import write_json, write_whole
from gammacaps.models.folder import new_run
from gammacaps.models.shipped import FIGURES, FILES
from gammacaps.names import NORM_TITLES, SHIPPED
from gammacaps.reporting.command_line import options
from gammacaps.runs.inputs import INPUTS
from gammacaps.runs.run import AUDIT, BEYOND, RESULTS, Run
from gammacaps.runs.train_config import TrainConfig, config_from

USE = """## Use and limits

For research and teaching: to attack, to look inside (`gammacaps report {name}`), to compare with, to start from. It
knows images of {height} x {width} pixels of its {classes} classes and answers with one of them whatever it is shown.
Its robustness is for changes of at most eps in each pixel (L-inf) and does not carry over to others: turns, shifts,
blur, other cameras. The worst case is over the attacks above; a stronger one may lower it. Not for decisions about
people or safety."""
ALWAYS_GIVEN = ["preset", "robust", "eps", "attack_step", "attack_steps", "eps_ramp", "batch", "lr", "schedule", "ema"]
CLOCK = "Its rate and eps followed the clock (`--minutes`), so that another training gives other weights. "
LICENCE = "## Licence\n\nApache-2.0, as the package. This card is generated from the figures of these very weights."
RESEARCH = (
    " That is as far as it is ours to license: {title}, which it learned from, is for research and may not be sold."
)
COPY = " The images are a copy of 48 x 48 pixels of ones that had once been JPEG-compressed."  # smallnorb48-...


def card(run: Path, name: str, *, shipped: Path = SHIPPED) -> Path:
    """Puts a halved run and its card among the shipped networks; the folder's path.

    The figures are those of results.json (`gammacaps evaluate`) and, where they are there, of audit.json (`gammacaps
    audit`) and beyond.json (`gammacaps evaluate --beyond`); all must be of these very weights.
    """
    of = Run(run)
    stored = of.stored
    if of.config.precision is None or of.config.train is None:
        raise InputError(f"{run} is not halved: make a run of half precision of it with halve, and measure that one.")
    model = of.model()
    weights = identity(model)
    results, audit, beyond = of.results(), of.audit(), of.beyond()
    ways = (results, RESULTS, "evaluate"), (audit, AUDIT, "audit"), (beyond, BEYOND, "evaluate --beyond")
    for figures, file, verb in ways:
        if figures is not None and figures.get("weights") != weights:
            raise InputError(f"{run / file} is not of the weights beside it: measure them with gammacaps {verb} {run}.")
    if results is None:
        raise InputError(f"There is no file {run / RESULTS}: measure the network with gammacaps evaluate {run}.")
    if not results["complete"]:
        raise InputError(f"{run / RESULTS} is not complete: go on with gammacaps evaluate {run}.")
    parameters = sum(p.numel() for p in model.parameters())
    folder = shipped / name
    with new_run(folder, overwrite=True) as temporary:
        for file in FILES[:2]:
            shutil.copyfile(run / file, temporary / file)
        if of.inputs():
            shutil.copyfile(run / INPUTS, temporary / INPUTS)
        for file, figures in zip(FIGURES, (results, audit, beyond), strict=True):
            if figures is not None:
                write_json(temporary / file, _anywhere(figures, name))
        write_whole(temporary / FILES[2], card_text(name, stored, results, audit, parameters, beyond).encode())
    return folder


def _anywhere(figures: dict[str, Any], name: str) -> dict[str, Any]:
    """Figures without the paths of the machine on which they were measured."""
    data = {**figures["data"], "source": Path(figures["data"]["source"]).name}
    return {**figures, "run": name, "data": data, "settings": {**figures["settings"], "data_dir": None}}


def card_text(
    name: str,
    stored: dict[str, Any],
    results: dict[str, Any],
    audit: dict[str, Any] | None,
    parameters: int,
    beyond: dict[str, Any] | None = None,
) -> str:
    """The card as markdown."""
    parts = [
        "---\nlicense: apache-2.0\nlibrary_name: gammacaps\ntags: [capsule-network, adversarial-robustness]\n---",
        f"# {name}",
        _what(stored, results, parameters),
        "```python\nimport gammacaps\n\n"
        f'model = gammacaps.load("{name}")\nimages, labels = gammacaps.load_data("{results["data"]["name"]}")\n'
        f"model(images[:10])  # (10, {len(results['class_names'])}): the lengths of the class capsules\n```",
        _figures_table(results),
        _structure(results),
        _belief(results),
        _beyond(beyond),
        _audited(audit),
        _recipe(name, stored, results),
        _use(name, stored),
        LICENCE + (RESEARCH.format(title=title) if (title := research_only(stored["data"]["name"])) else ""),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _what(stored: dict[str, Any], results: dict[str, Any], parameters: int) -> str:
    model, eps = stored["model"], stored["train"]["eps"] if stored["train"]["robust"] else None
    routing = str(model.get("routing", "")).upper()
    kinds = {"gamma": f"Capsules with {routing} routing", "matrix": "Matrix capsules with EM routing", "cnn": "A CNN"}
    data = credit(stored["data"]["name"])
    norm = NORM_TITLES[stored["train"].get("norm", "linf")]
    how = f"under attack ({norm}, eps {eps:g})" if eps else "on clean images"
    # Without the option, a run is older than the objective.
    if "gamma" in stored["train"] and (weight := config_from(stored["train"]).gamma_weight()):
        how += f" with the gamma objective ({weight:g})"
    # A run that was in half precision before is not moved once more.
    moved = f", which moves no score of a test image by more than {stored['scores_moved']:.2g}"
    moved = moved if stored["scores_moved"] else ""
    words = (
        f"{kinds[model['architecture']]} (preset {stored['train']['preset']}), {parameters:,} parameters, "
        f"trained on {data} {how}. "
        f"Stored as {stored['precision']}{moved}. Classes: {', '.join(results['class_names'])}."
    )
    bare = model["architecture"] == "gamma" and not model["decoder"]
    return words + (" The decoder that reconstructs images is left out: the file would be too large." if bare else "")


def _beyond(figures: dict[str, Any] | None) -> str:
    """What it keeps of other norms, of turns, and of bad pictures; empty where that was not measured."""
    if figures is None:
        return ""
    rows = [(name, with_interval(row)) for name, row in main_rows(figures) if row["accuracy"] is not None]
    mean = figures["corruptions"]["mean"]
    if mean is not None:
        rows.append((f"bad pictures, mean of {len(figures['corruptions']['kinds'])}", f"{100 * mean:.1f}"))
    lines = ["| images | right, % |", "| --- | --- |", *(f"| {name} | {right} |" for name, right in rows)]
    count = f"{figures['data']['images']:,} test images"
    how = "the norms by PGD alone, which is weaker than all the attacks above"
    return f"## Other changes of the images\n\nBy `gammacaps evaluate --beyond`, on {count}, {how}:\n\n" + "\n".join(
        lines
    )


def _figures_table(results: dict[str, Any]) -> str:
    """One row an attack, one column a radius."""
    images = f"{results['data']['images']:,} test images of {results['data']['name']}"
    copy = COPY if Path(results["data"]["source"]).name.startswith("smallnorb48") else ""
    words = f"On {images}, measured with the weights as they are shipped: percent right, with the 95% interval.{copy}"
    radii = sorted({row["eps"] for row in results["worst"]})
    cells = {"clean": dict.fromkeys(radii, results["clean"])}
    for row in shown(results["attacks"]):
        cells.setdefault(attack_name(row), {})[row["eps"]] = row
    cells["**worst case**"] = {row["eps"]: row for row in results["worst"]}
    lines = [f"| | {' | '.join(f'eps {eps:g}' for eps in radii)} |", f"|{' --- |' * (len(radii) + 1)}"]
    for name, at in cells.items():
        lines.append(f"| {name} | {' | '.join(with_interval(at[eps]) if eps in at else '-' for eps in radii)} |")
    return "\n".join([f"## Figures\n\n{words}\n", *lines])


def _structure(results: dict[str, Any]) -> str:
    T, D = results["T"], results["D"]
    if T is None:
        return ""
    lines = [f"| | all classes | {results['class_names'][0]} |", "| --- | --- | --- |"]
    lines.append(f"| T (1 is a perfect tree) | {T['mean']:.3f} | {T['by_class'][0]['mean']:.3f} |")
    if D["mean"] is not None:
        lines.append(f"| D (0: no capsule reacts to the image) | {D['mean']:.3f} | {D['by_class'][0]['mean']:.3f} |")
    return "\n".join(lines)


def _belief(results: dict[str, Any]) -> str:
    """What the checks of an evaluation say of it."""
    judged = [check for check in results.get("checks", ()) if check["verdict"] != "skip"]
    if not judged:
        return "The figures were not checked."
    passed = sum(check["verdict"] == "pass" for check in judged)
    lines = [f"Can these figures be believed? {passed} of {len(judged)} checks passed."]
    lines += [f"- {c['verdict']}: {c['check']}: {c['meaning']}" for c in judged if c["verdict"] != "pass"]
    return "\n".join([lines[0], "", *lines[1:]]) if len(lines) > 1 else lines[0]


def _audited(audit: dict[str, Any] | None) -> str:
    return "" if audit is None else f"## Audit\n\n{audit['verdict']}"


def _recipe(name: str, stored: dict[str, Any], results: dict[str, Any]) -> str:
    training = {key: value for key, value in stored["train"].items() if key not in ("data_dir", "device")}
    # Defaults change; what makes the network is given even where it is one.
    usual = vars(TrainConfig()) | dict.fromkeys(ALWAYS_GIVEN, ...)
    line = f"gammacaps train{options(training, usual)} --out runs/my-{name}"
    settings = {key: value for key, value in results["settings"].items() if key not in ("data_dir", "device", "data")}
    if settings["limit"] is not None and settings["limit"] >= results["data"]["images"]:
        settings["limit"] = results["data"]["images"]
    measured = f"gammacaps evaluate {name}{options(settings, vars(EvaluateConfig()))}"
    steps, machine = stored.get("trained_steps"), stored["machine"]
    long = f"{steps:,} steps of {training['batch']} images" if steps else "a length that the run does not tell"
    where = f"{machine.get('device_name', 'an unknown device')}, torch {machine.get('torch', 'of an unknown version')}"
    return (
        f"## Recipe\n\nTrained for {long} with the seed {training['seed']} ({where}), then stored in half "
        f"precision by `python -m gammacaps.shipping halve`. {CLOCK if training['minutes'] else ''}The second command "
        f"measures the network that is shipped (use a GPU):\n\n    {line}\n    {measured}"
    )


def _use(name: str, stored: dict[str, Any]) -> str:
    _, height, width = stored["model"]["image_shape"]
    return USE.format(name=name, height=height, width=width, classes=stored["model"]["classes"])
