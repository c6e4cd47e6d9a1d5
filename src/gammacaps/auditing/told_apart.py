"""What gamma-capsules say together: how many different class sets, and which pairs of classes they tell apart."""

from collections.abc import Iterable
from itertools import combinations

Sets = Iterable[Iterable[int]]


def different_sets(sets: Sets) -> int:
    """How many different class sets there are."""
    return len({frozenset(own) for own in sets})


def pairs_told_apart(sets: Sets, classes: int) -> int:
    """How many pairs of classes there are of which some set has the one and not the other."""
    members = {frozenset(own) for own in sets}
    codes = [tuple(k in own for own in members) for k in range(classes)]
    return sum(a != b for a, b in combinations(codes, 2))
