"""Results as a table that a person can read."""

from typing import Any


def table(results: dict[str, Any]) -> str:
    """Accuracies with their 95% intervals, T and D, and what is to be kept in mind."""
    lines = [f"{results['data']['name']}, {results['data']['images']} test images", ""]
    lines.append(f"  {'':<22}{'accuracy':>9}   95% interval")
    lines.append(_accuracy("clean", results["clean"]))
    for row in results["attacks"]:
        lines.append(_accuracy(title(row), row))
    if results["T"] is not None:
        lines += ["", f"  {'':<22}{'all classes':>12}{results['class_names'][0]:>12} (class 0)"]
        lines.append(_structure("T (1: a tree)", results["T"], "mean"))
        for layer in results["T"]["layers"]:
            lines.append(_structure(f"  to {layer}", results["T"], layer))
        if results["D"]["mean"] is not None:
            lines.append(_structure("D (reacts to input)", results["D"], "mean"))
    notes = short_attacks(results["attacks"])
    if notes:
        lines += ["", *(f"  {note}" for note in notes)]
    return "\n".join(lines)


def short_attacks(attacks: list[dict[str, Any]]) -> list[str]:
    """A sentence for each attack whose steps can't cross its ball, so that its figure flatters the network."""
    return [
        f"Note: {row['steps']} steps of {row['step']:g} reach {row['steps'] * row['step']:g}, less than eps "
        f"{row['eps']:g}: the true accuracy there may be lower (raise --attack-step)."
        for row in attacks
        if row["steps"] * row["step"] < row["eps"] * (1 - 1e-9)
    ]


def title(row: dict[str, Any]) -> str:
    """An attack's name, as in PGD-40 eps 0.3."""
    name = f"PGD-{row['steps']}" if row["attack"] == "pgd" else row["attack"].upper()
    if row["restarts"] > 1:
        name += f" x{row['restarts']}"
    return f"{name} eps {row['eps']:g}"


def _accuracy(name: str, row: dict[str, Any]) -> str:
    low, high = row["interval"]
    return f"  {name:<22}{100 * row['accuracy']:>8.1f}%   {100 * low:.1f} to {100 * high:.1f}"


def _structure(name: str, scores: dict[str, Any], key: str) -> str:
    def of(values: dict[str, Any]) -> str:
        value = values["mean"] if key == "mean" else values["layers"][key]
        return "-" if value is None else f"{value:.3f}"

    return f"  {name:<22}{of(scores):>12}{of(scores['by_class'][0]):>12}"
