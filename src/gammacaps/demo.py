"""The demo: two small networks on the embedded sample, one trained under attack and one not, and a page about it."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from gammacaps.attacks import pgd
from gammacaps.auditing.config import AuditConfig
from gammacaps.auditing.kinds import GAMMA
from gammacaps.auditing.run import audit_run
from gammacaps.data import DataSet, load_set
from gammacaps.data.group_names import name_of_classes
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced
from gammacaps.evaluation.run import evaluate_run
from gammacaps.evaluation.table import title
from gammacaps.files import write_figure, write_whole, writing
from gammacaps.models import Model
from gammacaps.program import command
from gammacaps.progress import say
from gammacaps.radius import radius
from gammacaps.reporting.config import ReportConfig
from gammacaps.reporting.run import report_runs
from gammacaps.runs.run import Run
from gammacaps.runs.train_config import TrainConfig
from gammacaps.training.train import train

EPS = 0.1
HOW = {"under attack": "under attack", "standard": "on clean images"}
# Small enough that all of it takes minutes; both the table that is printed and the page are of these figures.
EVALUATION = EvaluateConfig(
    attacks=("quick",), eps=(EPS,), sweep=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3), limit=200, device="cpu"
)
AUDIT = AuditConfig(limit=60, device="cpu")
REPORT = ReportConfig(images=300, starts=8, steps=100, device="cpu")


def run_demo(
    folder: Path,
    *,
    minutes: float,
    seed: int,
    evaluation: EvaluateConfig = EVALUATION,
    audit: AuditConfig = AUDIT,
    report: ReportConfig = REPORT,
) -> None:
    """Trains, measures and draws; ends with a table and where everything lies."""
    started = time.monotonic()
    take_folder(folder)
    runs = {"under attack": folder / "robust", "standard": folder / "standard"}
    # With a single step the network soon learns to withstand that step alone; with more there are fewer of training.
    attack: dict[str, Any] = {"eps": EPS, "attack_steps": 2, "attack_step": 0.07, "eps_ramp": 0.5}
    # A higher rate than usual: in so few steps it is better, on images held back from training.
    shared: dict[str, Any] = {**attack, "batch": 64, "lr": 6e-3, "seed": seed, "device": "cpu"}
    say(f"1/5 Training a small gamma-capsule network under attack (eps {EPS}) for {minutes:g} minutes ...")
    models = {"under attack": train(TrainConfig(minutes=minutes, **shared), runs["under attack"], overwrite=True)}
    steps = Run(runs["under attack"]).steps
    say(f"2/5 Training the same network for as many steps ({steps}) on clean images ...")
    models["standard"] = train(TrainConfig(robust=False, steps=steps, **shared), runs["standard"], overwrite=True)
    say("3/5 Attacking both networks, and checking whether the figures are to be believed ...")
    results = {name: evaluate_run(run, evaluation) for name, run in runs.items()}
    say("4/5 Drawing what the attack does to each ...")
    picture = folder / "attacked.png"
    draw(models, load_set("fashion-mini", "test"), picture)
    say("5/5 Looking into both: which capsules are gamma-capsules, what do they look for ...")
    audited, _ = (audit_run(run, audit) for run in runs.values())
    page = report_runs(tuple(runs.values()), report)
    print(side_by_side(results))
    print(f"\n{named_capsules(audited)}")
    print(f"\nPicture: {picture}")
    for name, run in runs.items():
        print(f"The network trained {HOW[name]}: {run}")
    print(f"All about both side by side, to open in a browser: {page}")
    print(f"To play with a network that was trained longer and comes with the package: {command('explore')}")
    print(f"All of it took {time.monotonic() - started:.0f} s.")


def take_folder(folder: Path) -> None:
    """Makes the demo's folder, or takes an earlier demo's; any other is refused, since its runs would be replaced."""
    mark = folder / "demo.txt"
    with writing(folder):
        if folder.is_dir() and not mark.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} holds something that no demo made: choose another folder with --out.")
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(mark, b"Made by `gammacaps demo`, which replaces what is in this folder when it runs again.\n")


def side_by_side(results: dict[str, dict[str, Any]]) -> str:
    """One row a measurement, one column a network."""
    first = next(iter(results.values()))
    rows = [("right on clean images", [r["clean"] for r in results.values()])]
    for place, row in enumerate(first["attacks"]):
        rows.append((f"right under {title(row)}", [r["attacks"][place] for r in results.values()]))
    for place, row in enumerate(first["worst"]):
        rows.append(
            (f"right in the worst case eps {radius(row['eps'])}", [r["worst"][place] for r in results.values()])
        )
    lines = ["", f"{first['data']['images']} test images of clothes; how the network was trained:", ""]
    wide = max(len(name) for name, _ in rows)
    lines.append(f"  {'':<{wide}}" + "".join(f"{name:>14}" for name in results))
    for name, cells in rows:
        lines.append(f"  {name:<{wide}}" + "".join(f"{100 * cell['accuracy']:>13.1f}%" for cell in cells))
    trees = "".join(f"{r['T']['mean']:>14.2f}" for r in results.values())
    return "\n".join([*lines, f"  {'T: capsules with one parent':<{wide}}{trees}"])


def named_capsules(audited: dict[str, Any]) -> str:
    """How many hidden capsules are gamma-capsules, and what they stand for: the classes that they are active on."""
    names, data = audited["class_names"], audited["data"]["name"]
    rows = [row for layer in audited["layers"] for row in layer["capsules"]]
    gamma = Counter(name_of_classes(row["classes"], names, data) for row in rows if row["kind"] == GAMMA)
    images = f"by an audit of {audited['data']['images']} test images"
    words = f"{gamma.total()} of {len(rows)} hidden capsules of the network trained under attack are gamma-capsules"
    told = [f"  {name}{f' ({count} capsules)' if count > 1 else ''}" for name, count in sorted(gamma.items())]
    return "\n".join([f"{words} {images}{', active on:' if gamma else '.'}", *told])


def draw(models: dict[str, Model], data: DataSet, path: Path) -> None:
    """One test image of each class, and what PGD makes of it against each network, with the network's answer."""
    from matplotlib.figure import Figure

    classes = len(data.class_names)
    images, labels = balanced(data, classes)
    order = labels.argsort()
    images, labels = images[order], labels[order]
    figure = Figure(figsize=(1.15 * classes, 4.4), layout="constrained")
    cells = figure.subplots(len(models) + 1, classes)
    rows = [("test image", images, labels)]
    for name, model in models.items():
        generator = torch.Generator().manual_seed(0)
        attacked = pgd(model, images, labels, eps=EPS, step=0.01, generator=generator)
        with torch.no_grad():
            rows.append((f"attacked:\ntrained {HOW[name]}", attacked, model(attacked).argmax(dim=1)))
    for row, (name, pictures, answers) in enumerate(rows):
        for column in range(classes):
            cell = cells[row][column]
            cell.imshow(pictures[column, 0].numpy(), cmap="gray", vmin=0, vmax=1)
            right = answers[column] == labels[column]
            mark = "" if row == 0 else ("✓ " if right else "✗ ")
            colour = "black" if row == 0 else ("#0072b2" if right else "#d55e00")
            cell.set_title(f"{mark}{data.class_names[answers[column]]}", fontsize=8, color=colour)
            cell.set_xticks([])
            cell.set_yticks([])
            if column == 0:
                cell.set_ylabel(name, fontsize=8)
    write_figure(path, figure)
