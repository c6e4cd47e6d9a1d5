"""Figures as plain dicts that print as short tables, and show themselves in a notebook."""

import textwrap
from pathlib import Path
from typing import Any

from gammacaps.auditing.table import table as audit_table
from gammacaps.evaluation.table import accuracies, belief
from gammacaps.evaluation.table import table as evaluation_table
from gammacaps.face.page import fragment, page
from gammacaps.files import write_whole
from gammacaps.radius import radius


class Evaluation(dict[str, Any]):
    """The values of results.json, by their names there; printed, they are the table of `gammacaps evaluate`."""

    def __repr__(self) -> str:
        return evaluation_table(self)

    def _repr_html_(self) -> str:
        data = self["data"]
        return fragment(self, f"{data['images']:,} test images of {data['name']}")


class Audit(dict[str, Any]):
    """The values of audit.json, by their names there; printed, they are the table of `gammacaps audit`."""

    def __repr__(self) -> str:
        return audit_table(self)


class Check(dict[str, Any]):
    """What `gammacaps.check` found: a short table when printed, a picture of it in a notebook, a page by `write_page`.

    All values stand under their names as in a dict: "clean", "attacks", "worst", "checks", "verdict", "notes" and more.
    """

    @property
    def clean(self) -> float:
        """The share of images that are right as they are."""
        return float(self["clean"]["accuracy"])

    @property
    def worst(self) -> float | None:
        """The share that stands under every attack that was run, at the largest radius; None without attacks."""
        rows = [row for row in self["worst"] if row["accuracy"] is not None]
        return float(max(rows, key=lambda row: row["eps"])["accuracy"]) if rows else None

    @property
    def verdict(self) -> str | None:
        """Whether to believe it: "pass", "warn" or "fail"; None where nothing was checked."""
        return self.get("verdict")

    def __repr__(self) -> str:
        lines = [self._title(), "", *accuracies(self), *belief(self)]
        for note in (*self["skipped"], *self["notes"]):
            lines += ["", *textwrap.wrap(f"Note: {note}", 110, initial_indent="  ", subsequent_indent="        ")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return fragment(self, self._title())

    def write_page(self, path: str | Path) -> Path:
        """Writes one page of HTML that shows all of it and needs nothing else; its path."""
        path = Path(path)
        write_whole(path, page(self, self._title()).encode(errors="backslashreplace"))
        return path

    def _title(self) -> str:
        radii = ", ".join(radius(row["eps"]) for row in self["worst"])
        at = f", eps {radii} (L-inf)" if radii else ""
        ran = ", ".join(self["settings"]["attacks"])
        return f"{self['model']}: {self['clean']['images']:,} images{at}, attacks: {ran}"
