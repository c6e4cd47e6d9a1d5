"""Which classes are mixed up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gammacaps.errors import InputError
from gammacaps.explain.batches import named
from gammacaps.explain.pictures import figure_png, heat_figure
from gammacaps.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class Confusion:
    """The confusion matrix: how many images of each class (row) were taken for which (column)."""

    matrix: list[list[int]]
    class_names: list[str]
    never: list[int]  # classes that have images and were never predicted
    meaning: str

    __repr__ = short_repr

    def to_json(self) -> dict[str, Any]:
        return {
            "matrix": self.matrix,
            "class_names": self.class_names,
            "never": self.never,
            "meaning": self.meaning,
        }

    def png(self) -> bytes:
        counts = torch.tensor(self.matrix, dtype=torch.float32)
        shares = counts / counts.sum(1, keepdim=True).clamp_min(1)
        cells = [[str(n) if n else "" for n in row] for row in self.matrix] if len(self.matrix) <= 20 else None
        figure = heat_figure(
            shares,
            self.class_names,
            self.class_names,
            title="Images by class and prediction",
            down="true class",
            across="taken for",
            cells=cells,
        )
        return figure_png(figure)

    _repr_png_ = png


def confusion_map(matrix: Sequence[Sequence[int]], class_names: Sequence[str] | None = None) -> Confusion:
    """A confusion matrix with its picture, from results["confusion"] and results["class_names"] of a results.json."""
    counts = torch.tensor(matrix)
    if counts.dim() != 2 or counts.shape[0] != counts.shape[1] or len(counts) == 0:
        raise InputError(f"A confusion matrix is square, a row and a column a class, not {tuple(counts.shape)}.")
    names = named(class_names, len(counts))
    total = counts.sum(1)
    never = ((counts.sum(0) == 0) & (total > 0)).nonzero().squeeze(1).tolist()
    mistakes = counts - counts.diag().diag()
    if mistakes.max() == 0:
        meaning = "No image was taken for another class."
    else:
        true, taken = divmod(int(mistakes.argmax()), len(counts))
        meaning = (
            f"The most frequent mistake: {names[true]} taken for {names[taken]} "
            f"({mistakes[true, taken]} of {total[true]} images)."
        )
    if never:
        meaning += f" Never predicted, so not learned: {', '.join(names[k] for k in never)}."
    return Confusion(counts.tolist(), names, never, meaning)
