"""What came out, with 95% intervals and whether to believe it, and what to do where a network is worth nothing."""

import shlex
from pathlib import Path
from typing import Any

from gammacaps.program import command
from gammacaps.radius import radius
from gammacaps.reporting.apart import not_apart, standing
from gammacaps.reporting.sections.checks import believed
from gammacaps.runs.run import Run
from gammacaps.start.output import CLEAN, DATA, ROBUST

NAMES = {CLEAN: "trained on clean pictures", ROBUST: "trained under attack"}
MEANING = {
    "chance": "is stuck at chance",
    "attack": "is at chance under attack",
    "overlearned": "has learned its pictures by heart",
}
NEAR = 0.2  # a network that comes no further than this from chance towards all right has learned next to nothing


def outcome(out: Path, eps: float) -> str:
    """Sentences from the results of both runs."""
    runs = {name: Run(out / name) for name in NAMES}
    results: dict[str, Any] = {name: run.results() or {} for name, run in runs.items()}
    images = results[ROBUST]["clean"]["images"]
    lines = [
        f"The network {NAMES[name]} classifies {_share(figures['clean'])} of {images} test pictures correctly, and in "
        f"the worst case under attack (each pixel changed by up to {radius(eps)}) {_share(figures['worst'][-1])}; "
        f"{believed(figures)}."
        for name, figures in results.items()
    ]
    lines.append("In brackets: the 95% interval.")
    alike = not_apart(*(standing(figures, figures["worst"][-1]) for figures in (results[ROBUST], results[CLEAN])))
    if alike:
        lines.append(alike)
    for name, run in runs.items():
        told: dict[str, str] = {each.kind: each.words for each in run.warnings()}
        largest, often = _largest(results[name])
        clean = results[name]["clean"]
        chance = f"always saying '{often}' would have {largest:.1%} right"
        if "chance" not in told and clean["interval"][0] <= largest:
            if clean["accuracy"] <= largest + NEAR * (1 - largest):
                told["chance"] = f"{chance}. Try a longer training, then a lower --lr."
            else:
                lines.append(
                    f"The network {NAMES[name]} can't be told from chance with {clean['images']} test pictures "
                    f"({chance}): more pictures are needed."
                )
        lines += [f"The network {NAMES[name]} {MEANING[kind]}: {words}" for kind, words in told.items()]
        if told:
            lines.append(f"To try such options with these pictures: {_try(out, name, eps)}")
    return "\n".join(lines)


def _share(row: dict[str, Any]) -> str:
    low, high = row["interval"]
    return f"{row['accuracy']:.1%} ({low:.1%} to {high:.1%})"


def _largest(figures: dict[str, Any]) -> tuple[float, str]:
    """The share and the name of the most frequent class among the test pictures."""
    counts = [sum(row) for row in figures["confusion"]]
    place = counts.index(max(counts))
    return counts[place] / sum(counts), figures["class_names"][place]


def _try(out: Path, name: str, eps: float) -> str:
    attack = "--no-robust" if name == CLEAN else f"--eps {eps:.3g} --attack-steps 2 --attack-step {0.7 * eps:.3g}"
    return command(f"train --data {shlex.quote(str(out / DATA))} {attack} --batch 64")
