"""What hidden capsules are called: by the classes that an audit found, or that training gave them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gammacaps.auditing.kinds import GAMMA
from gammacaps.data.group_names import name_of_classes


def capsule_names(
    layers: Sequence[str],
    audit: dict[str, Any] | None,
    given: Mapping[str, Sequence[Sequence[int]]],
    class_names: Sequence[str],
    data_name: str | None,
) -> dict[tuple[int, int], str]:
    """The names of hidden capsules, by (layer's index, capsule).

    A capsule that was audited has a name if it is a gamma-capsule: any other says nothing that holds. Of one that was
    not, it is that of the class set that it was trained for, if there is one. Where several capsules of a layer have
    the same name, each has its number after it: "shoes (3)".

    Args:
        layers: the network's, from the primary capsules to the classes.
        audit: audit.json, or None.
        given: `class_sets` of config.json, by layer.
    """
    names: dict[tuple[int, int], str] = {}
    for l, layer in enumerate(layers[:-1]):
        sets: dict[int, Sequence[int] | None] = dict(enumerate(given.get(layer, ())))
        for row in rows_of(audit, layer):
            sets[row["capsule"]] = row["classes"] if row["kind"] == GAMMA else None
        own_names = {i: name_of_classes(own, class_names, data_name) for i, own in sets.items() if own}
        times = Counter(own_names.values())
        names |= {(l, i): name if times[name] == 1 else f"{name} ({i})" for i, name in own_names.items()}
    return names


def rows_of(audit: dict[str, Any] | None, layer: str) -> list[dict[str, Any]]:
    """What an audit says of each capsule of a layer."""
    return [row for each in (audit["layers"] if audit else ()) if each["layer"] == layer for row in each["capsules"]]
