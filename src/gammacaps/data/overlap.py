"""Which data sets have test images in common: figures of images that something was chosen by promise too much."""

from gammacaps.data.named_files import user_path
from gammacaps.data.named_sets import FASHION, MINI, NAMED_SETS


def share_test_images(one: str, other: str) -> bool:
    """Whether two data sets have test images in common, as far as their names or, of users' own files, paths tell."""
    if one == other:
        return True
    parts = [_part(name) for name in (one, other)]
    if parts[0] is None or parts[1] is None:
        return parts == [None, None] and user_path(one).absolute() == user_path(other).absolute()
    (files, toys), (other_files, other_toys) = parts[0], parts[1]
    return files == other_files and not (toys and other_toys and toys.isdisjoint(other_toys))


def without_images_of(data: str, chosen: str) -> str | None:
    """A part of a data set's test images that has none of another set's; None where there is no such part by name."""
    whole = NAMED_SETS.get(data)
    if whole is None:
        return None
    parts = [
        one.name for one in NAMED_SETS.values() if one.scaled == whole.scaled and share_test_images(one.name, data)
    ]
    return next((name for name in parts if not share_test_images(name, chosen)), None)


def _part(name: str) -> tuple[str, frozenset[int]] | None:
    """Whose files a known set's test images are in, and which toys they show, none meaning all."""
    if name == MINI:  # a sample of it
        return FASHION.name, frozenset()
    data = NAMED_SETS.get(name)
    return None if data is None else (data.files_of or data.name, frozenset(data.toys))
