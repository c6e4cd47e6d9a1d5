"""The page of the networks that come with the package: their figures, from the files beside their weights."""

import json
from pathlib import Path

HEADER = """# Networks that come with the package

Each card says how a network was trained and what it withstands. "Worst case" counts an image as right only if it
survives every attack that was run; eps is the largest change of a pixel.

| network | test images | clean | worst case | checks passed | hidden capsules that are gamma-capsules |
| --- | --- | --- | --- | --- | --- |
"""


def content(folders: list[Path]) -> str:
    return HEADER + "".join(f"{_row(folder)}\n" for folder in folders)


def _row(folder: Path) -> str:
    results, audit = (json.loads((folder / name).read_text()) for name in ("results.json", "audit.json"))
    worst = ", ".join(f"{100 * row['accuracy']:.1f}% at eps {row['eps']:g}" for row in results["worst"])
    passed = sum(check["verdict"] == "pass" for check in results["checks"])
    kinds = [capsule["kind"] for layer in audit["layers"] for capsule in layer["capsules"]]
    cells = [
        f"[{folder.name}]({folder.name}.md)",
        f"{results['clean']['images']:,} of {results['data']['name']}",
        f"{100 * results['clean']['accuracy']:.1f}%",
        worst,
        f"{passed} of {len(results['checks'])}",
        f"{kinds.count('gamma-capsule')} of {len(kinds)}",
    ]
    return f"| {' | '.join(cells)} |"
