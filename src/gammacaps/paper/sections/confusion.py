"""Table 3: the confusion matrix on fashionMNIST, early and late in training under attack, beside the paper's."""

from pathlib import Path

from gammacaps.explain.maps import confusion_map
from gammacaps.files import write_whole
from gammacaps.paper.expected import expected
from gammacaps.paper.plan import LONG
from gammacaps.paper.readings import SHIRT, Records, right
from gammacaps.paper.sections.cells import missing


def section(measured: Records, folder: Path) -> str:
    if LONG not in measured:
        return missing("confusion", measured)
    last = measured[LONG]
    paper = expected()["confusion"]
    names = last.figures["results"]["class_names"]
    write_whole(folder / "confusion-paper.png", confusion_map(paper["matrix"], names).png())
    sums = [sum(row) for row in paper["matrix"]]
    lines = [
        f"The paper's after {paper['steps']:,} steps (SDA, clean test images; a row is the true class). Its rows add "
        f"up to {min(sums)} to {max(sums)}, {sum(sums):,} in all, where the test set has 1,000 images of each class:"
    ]
    lines.append("![The paper's confusion matrix](confusion-paper.png)")
    for record in (*last.earlier, last):
        shown = confusion_map(record.figures["results"]["confusion"], names)
        write_whole(folder / f"confusion-{record.steps}.png", shown.png())
        lines.append(
            f"Ours after {record.steps:,} steps: {right(record, SHIRT):.1%} of the shirts are right. {shown.meaning}"
        )
        lines.append(f"![Our confusion matrix after {record.steps:,} steps](confusion-{record.steps}.png)")
    return "\n\n".join(lines)
