"""A set of classes in words: "shoes" where the data set has a name for it, else the classes, shortened."""

from collections.abc import Iterable, Sequence

from gammacaps.data.named_sets import groups_of

MOST = 4  # classes that are listed in full


def name_of_classes(
    classes: Iterable[int], class_names: Sequence[str], data_name: str | None = None, *, most: int = MOST
) -> str:
    """What people would call these classes.

    >>> fashion = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
    >>> name_of_classes((5, 7, 9), fashion, "fashion-mnist")
    'shoes'
    >>> name_of_classes((5, 7, 8, 9), fashion, "fashion-mnist")
    'shoes and Bag'
    >>> name_of_classes((0, 1, 2, 4, 5, 6, 7, 8, 9), fashion)
    'all but Dress'
    >>> name_of_classes((0, 2, 3, 4, 7, 8), fashion)
    'T-shirt, Pullover, Dress and 3 more'

    Args:
        classes: their numbers.
        class_names: the names of all classes, by number.
        data_name: the data set, whose groups have names if it is in the table (`add_data_set`).
        most: of more classes than this the last are only counted.
    """
    chosen = sorted(set(classes))
    if not chosen:
        return "no class"
    if len(chosen) == 1:
        return class_names[chosen[0]]
    if len(chosen) == len(class_names):
        return "all classes"
    words = [*_by_groups(chosen, class_names, data_name), *_all_but(chosen, class_names)]
    return words[0] if words else listed([class_names[k] for k in chosen], most)


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


def _by_groups(chosen: list[int], class_names: Sequence[str], data_name: str | None) -> list[str]:
    """Names by the data set's groups, the plainest first: a group, one without or with a class, all but one."""
    if data_name is None:
        return []
    place = {name: k for k, name in enumerate(class_names)}
    known = groups_of(data_name).items()
    groups = {name: {place[c] for c in members} for name, members in known if all(c in place for c in members)}
    mine, others = set(chosen), set(range(len(class_names))) - set(chosen)
    exact = [name for name, group in groups.items() if group == mine]
    rest = [f"all but {name}" for name, group in groups.items() if group == others]
    large = {name: group for name, group in groups.items() if len(group) > 2}  # of a pair the list is as short
    less = [(name, group - mine) for name, group in large.items() if mine < group and len(mine) > MOST]
    more = [(name, mine - group) for name, group in large.items() if group < mine]
    return [
        *exact,
        *(f"{name} but {class_names[out.pop()]}" for name, out in less if len(out) == 1),
        *(f"{name} and {class_names[one.pop()]}" for name, one in more if len(one) == 1),
        *rest,
    ]


def _all_but(chosen: list[int], class_names: Sequence[str]) -> list[str]:
    """ "all but X" where one or two classes are left out, and at least twice as many are in."""
    out = [name for k, name in enumerate(class_names) if k not in chosen]
    return [f"all but {listed(out)}"] if len(out) <= 2 and len(chosen) > 2 * len(out) else []
