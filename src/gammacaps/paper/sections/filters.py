"""The filters of the first convolution, trained under attack and on clean images."""

from pathlib import Path

import torch

from gammacaps.explain.filters import Filters
from gammacaps.files import write_whole
from gammacaps.paper.plan import PARTS
from gammacaps.paper.readings import Records
from gammacaps.paper.record import Record
from gammacaps.paper.sections.cells import missing


def section(measured: Records, folder: Path) -> str:
    lines = []
    for name in PARTS["filters"]:
        if name in measured:
            record = measured[name]
            under = record.figures["train"]["robust"]
            how = "under attack" if under else "on clean images"
            picture = f"filters-{'robust' if under else 'standard'}.png"
            write_whole(folder / picture, _picture(record))
            share = record.figures["filters"]["largest_tenth"]
            lines.append(
                f"Trained {how} ({record.steps:,} steps): the largest tenth of a filter's weights holds {share:.0%} "
                "of its absolute weight (19% for uniform weights, as at the start; 100% where a tenth does all the "
                "work). Orange is positive, blue negative."
            )
            lines.append(f"![Filters trained {how}]({picture})")
    return "\n\n".join(text for text in (*lines, missing("filters", measured)) if text)


def _picture(record: Record) -> bytes:
    weights = torch.from_numpy(record.arrays["filters"]).float()
    nothing = torch.empty(0)
    return Filters(weights, nothing, nothing, 0.0, 0.0, "").png()
