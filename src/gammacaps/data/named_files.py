"""The files of named data sets: looked for on this machine first, else downloaded once and checked by hash."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gammacaps.data.named_sets import NAMED_SETS, File, SplitFiles
from gammacaps.errors import InputError

ENVIRONMENT = "GAMMACAPS_DATA"


@dataclass(frozen=True)
class LocalFiles:
    """A split's files on this machine."""

    images: Path
    labels: Path
    expected: SplitFiles


def obtain(name: str, split: str, data_dir: str | Path | None = None) -> LocalFiles:
    """A split's files, downloaded into the cache if they are not on this machine."""
    return locate(name, split, data_dir) or _download(name, split)


def locate(name: str, split: str, data_dir: str | Path | None = None) -> LocalFiles | None:
    """A split's files if they are on this machine, both from the same folder and edition."""
    try:
        for folder in _folders(name, data_dir):
            for files in NAMED_SETS[name].editions(split):
                images, labels = _present(folder, files.images), _present(folder, files.labels)
                if images and labels:
                    return LocalFiles(images, labels, files)
    except OSError as error:
        raise InputError(
            f"{error.filename} can't be read ({error.strerror}): check the path and its permissions."
        ) from error
    return None


def info_file(name: str, split: str, data_dir: str | Path | None = None, *, fetch: bool = False) -> Path | None:
    """What says what a split's images show, from beside them or from the cache; None where it is in neither.

    With `fetch` it is downloaded then, where a server offers it.
    """
    files = locate(name, split, data_dir)
    expected = None if files is None else files.expected.info
    if files is None or expected is None:
        return None
    there = _present(files.images.parent, expected) or _present(_cache(name), expected)
    if there is None and fetch and expected.packed and NAMED_SETS[name].url:
        return _retrieve(name, expected, f"put {expected.name}.gz beside {files.images}")
    return there


def user_path(path: str | Path) -> Path:
    """A path as users write it, with `~` for their home."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  Path's own raises where there is no such user


def _folders(name: str, data_dir: str | Path | None) -> Iterator[Path]:
    given = {"The data folder": data_dir, f"The folder in {ENVIRONMENT}": os.environ.get(ENVIRONMENT)}
    for what, folder in given.items():
        if folder:
            root = user_path(folder)
            if not root.is_dir():
                raise InputError(f"{what}, {folder}, does not exist: correct it, or leave it out to download.")
            yield root / _folder(name)
            yield root
    yield from map(Path, NAMED_SETS[name].folders)
    yield _cache(name)


def _folder(name: str) -> str:
    """What the folder of a set's files is called."""
    return NAMED_SETS[name].files_of or name


def _present(folder: Path, file: File) -> Path | None:
    paths = (folder / f"{file.name}.gz", folder / file.name)
    return next((path for path in paths if path.is_file()), None)


def _cache(name: str) -> Path:
    import pooch  # only here, since it takes a moment and is not needed where the files are at hand

    return Path(pooch.os_cache("gammacaps")) / _folder(name)


def _download(name: str, split: str) -> LocalFiles:
    files = NAMED_SETS[name].editions(split)[0]
    instead = (
        f"put {files.images.name}.gz and {files.labels.name}.gz into a folder and name it by --data-dir or "
        f"{ENVIRONMENT}"
    )
    if not NAMED_SETS[name].url:
        raise InputError(f"{name} is not on this machine, and no server offers it: {instead}.")
    return LocalFiles(_retrieve(name, files.images, instead), _retrieve(name, files.labels, instead), files)


def _retrieve(name: str, file: File, instead: str) -> Path:
    import pooch

    url = f"{NAMED_SETS[name].url}{file.name}.gz"
    bar = sys.stderr.isatty()
    try:
        return Path(pooch.retrieve(url, file.packed, f"{file.name}.gz", _cache(name), progressbar=bar))
    except ValueError as error:  # pooch's word for a hash that differs; it keeps nothing of such a file
        raise InputError(
            f"{url} is not the file that it should be (its hash differs): try again, or {instead}."
        ) from error
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise InputError(f"{url} could not be fetched ({cause}): try again with a network, or {instead}.") from error
