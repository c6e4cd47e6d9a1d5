"""The numbers of the paper's tables, as data."""

import functools
import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("expected.json")
EPS = (0.1, 0.3, 0.5)  # the radii of its tables


@functools.cache
def expected() -> dict[str, Any]:
    """By table, data set and routing; accuracies in percent."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def of_paper(table: str, data: str, rule: str) -> Any:
    """The paper's figures of a rule, by table and data set; of EM whatever its iterations, which it does not tell."""
    return expected()[table][data]["em" if rule == "em2" else rule]
