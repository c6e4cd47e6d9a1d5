"""Beyond the paper: the gamma objective, and with it the deep stem, trained as long under the same attack."""

from pathlib import Path

from gammacaps.paper.plan import BEYOND, DATA, names_of
from gammacaps.paper.readings import Records, numbers
from gammacaps.paper.sections.cells import heading, missing, percent, table

WORDS = (
    "Networks that the paper does not have, trained as long under the same attack as those of the fair table: `gamma`, "
    "the paper's network with a term in its loss by which each hidden capsule becomes a gamma-capsule "
    "([docs/gamma.md](../gamma.md)), and `deep`, the same with small convolutions and pooling before the capsules. "
    "The paper's network stands beside them."
)
HEADER = ["data", "network", "steps", "seed", "kind", "clean", "eps", "PGD-40", "worst case", "T", "D"]


def section(measured: Records, folder: Path) -> str:
    names = [
        name for data in DATA for kind in ("robust", "gamma", "deep") for name in names_of((data,), ("sda",), kind)
    ]
    if not any(name in measured for name in BEYOND):
        return f"{WORDS}\n\n{missing('beyond', measured)}"
    rows = []
    for record in (measured[name] for name in names if name in measured):
        eps, scores = record.figures["train"]["eps"], numbers(record)
        cells = [percent(record.figures["results"]["clean"]), f"{eps:g}", percent(record.accuracy("pgd", eps))]
        cells += [percent(record.worst(eps)), f"{scores['T']:.2f}", f"{scores['D']:.2f}"]
        rows.append([*heading(record), record.figures["kind"], *cells])
    return "\n\n".join(text for text in (WORDS, table(HEADER, rows), missing("beyond", measured)) if text)
