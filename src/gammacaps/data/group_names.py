"""A set of classes in few words: "shoes" where the data set has a name for it, else "all but Bag", else the classes."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from gammacaps.data.named_sets import groups_of

MOST = 3  # names in one name
HARD = 3  # names, what is left out counting as one more: as hard to read as a short list of all classes
SHORT = 34  # letters, two short lines: a list that is no longer is given in full, as that of four garments


def name_of_classes(
    classes: Iterable[int], class_names: Sequence[str], data_name: str | None = None, *, most: int = MOST
) -> str:
    """What people would call these classes.

    >>> fashion = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
    >>> name_of_classes((5, 7, 9), fashion, "fashion-mnist")
    'shoes'
    >>> name_of_classes((5, 7, 8, 9), fashion, "fashion-mnist")
    'shoes and Bag'
    >>> name_of_classes((0, 2, 3, 4, 6, 8), fashion, "fashion-mnist")
    'all but shoes and Trouser'
    >>> name_of_classes((0, 1, 2, 4, 5, 6, 7, 8, 9), fashion)
    'all but Dress'
    >>> name_of_classes((0, 2, 3, 4, 7, 8), fashion)
    'T-shirt, Pullover and 4 more'

    Args:
        classes: their numbers.
        class_names: the names of all classes, by number.
        data_name: the data set, whose groups have names if it is in the table (`add_data_set`).
        most: of more names than this in a list the last are only counted.
    """
    chosen = set(classes)
    if not chosen:
        return "no class"
    if len(chosen) == 1:
        return class_names[chosen.pop()]
    if len(chosen) == len(class_names):
        return "all classes"
    own = [class_names[k] for k in sorted(chosen)]
    whole = listed(own, len(own))
    ways = list(_ways(chosen, class_names, _groups(class_names, data_name)))
    effort, way = min(ways, key=lambda way: (way[0], len(way[1])), default=(0, ""))
    if way and (effort < HARD or len(whole) > SHORT):
        return way
    return whole if len(whole) <= SHORT else listed(own, most)


def name_with_classes(classes: Sequence[int], class_names: Sequence[str], data_name: str | None = None) -> str:
    """The same, and after it the classes where the name does not list them: "shoes: Sandal, Sneaker and Ankle boot"."""
    name = name_of_classes(classes, class_names, data_name, most=len(class_names))
    whole = listed([class_names[k] for k in sorted(set(classes))], len(class_names))
    return name if len(classes) in (0, len(class_names)) or name == whole else f"{name}: {whole}"


def listed(words: Sequence[str], most: int = MOST) -> str:
    """Words as a list, "a, b and c"; of more than `most` the last are counted, "a, b and 3 more"."""
    if len(words) > most:
        shown = max(1, most - 1)
        words = [*words[:shown], f"{len(words) - shown} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _groups(class_names: Sequence[str], data_name: str | None) -> dict[str, set[int]]:
    """The data set's groups whose classes are all among these."""
    place = {name: k for k, name in enumerate(class_names)}
    known = groups_of(data_name).items() if data_name is not None else ()
    return {name: {place[c] for c in members} for name, members in known if all(c in place for c in members)}


def _ways(chosen: set[int], class_names: Sequence[str], groups: dict[str, set[int]]) -> Iterator[tuple[int, str]]:
    """Ways to say a set in at most MOST names, each with how hard it is to read: by its names, and what is left out."""
    for parts in _parts(chosen, class_names, groups):
        yield len(parts), listed(parts)
    for name, group in groups.items():
        out = group - chosen
        if chosen < group and len(out) == 1 and len(chosen) > MOST:
            yield 2, f"{name} but {class_names[out.pop()]}"
    for parts in _parts(set(range(len(class_names))) - chosen, class_names, groups):
        if len(chosen) > 2 * len(parts):
            yield 1 + len(parts), f"all but {listed(parts)}"


def _parts(chosen: set[int], class_names: Sequence[str], groups: dict[str, set[int]]) -> Iterator[list[str]]:
    """Names that together make up a set: one group, or groups that have nothing in common and the classes left over.

    Among several names a group of two is none: its classes are as short.
    """
    yield from ([name] for name, group in groups.items() if group == chosen)
    large = [name for name, group in groups.items() if group < chosen and len(group) > 2]
    for count in range(min(MOST, len(large)) + 1):
        for some in combinations(large, count):
            inside = set[int]().union(*(groups[name] for name in some))
            left = sorted(chosen - inside)
            if len(inside) == sum(len(groups[name]) for name in some) and count + len(left) <= MOST:
                yield [*some, *(class_names[k] for k in left)]
