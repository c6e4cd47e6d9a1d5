"""One split of a data set, whatever it is named by: its name, a user's own files, or a Dataset's import path."""

from pathlib import Path

from jaxtyping import Float32, Int64
from torch import Tensor

from gammacaps.data.checks import Size, check_size
from gammacaps.data.dataset import DataSet, StoredSet
from gammacaps.data.folders import read_folder
from gammacaps.data.named_files import locate, user_path
from gammacaps.data.named_sets import EMBEDDED, MINI, NAMED_SETS, names
from gammacaps.data.npy_folder import is_stored, open_stored
from gammacaps.data.npz import read_npz
from gammacaps.data.read_named import VIEWS, read_named
from gammacaps.data.torch_dataset import read_imported
from gammacaps.errors import InputError, check_choice
from gammacaps.imports import is_import_path, module_of

SPLITS = ("train", "test")


def load_data(
    name: str | Path,
    split: str = "test",
    *,
    data_dir: str | Path | None = None,
    size: Size = None,
    views: str = "separate",
) -> tuple[Float32[Tensor, "N C H W"], Int64[Tensor, "N"]]:
    """Images (N, C, H, W) in [0, 1] and labels (N,) of one split; `load_set` has more on the arguments.

    >>> import gammacaps
    >>> images, labels = gammacaps.load_data("fashion-mini")
    >>> images.shape, labels.shape
    (torch.Size([500, 1, 28, 28]), torch.Size([500]))
    """
    data = load_set(name, split, data_dir=data_dir, size=size, views=views)
    return data.images, data.labels


def load_set(
    name: str | Path,
    split: str = "test",
    *,
    data_dir: str | Path | None = None,
    size: Size = None,
    views: str = "separate",
    skip_unreadable: bool = False,
) -> DataSet:
    """One split, "train" or "test", of a data set.

    `name` is one of `names()`, a path to an `.npz` file, a folder with one sub-folder of images a class (`./mnist` is a
    folder where `mnist` is the name), one that `gammacaps data --store` wrote, which is read whole (`open_set` leaves
    it on disk), or the import path of a Dataset, `package.module:name`. Named sets are looked for in `data_dir`, in the
    folder that the variable GAMMACAPS_DATA names, in the system's folder and in the user's cache, and are downloaded if
    in none. `size`, one number or (H, W), resizes by area averaging; None is the data's own size, for smallnorb
    28 x 28. `views` is for smallnorb: "separate" gives each camera view as an image, "channels" both as one image of
    two channels. With `skip_unreadable` files of a folder that can't be read are left out and listed as `skipped`.
    """
    _check_paths(name, data_dir)
    check_choice("split", split, SPLITS)
    check_choice("way to give the views", views, VIEWS)
    shape = check_size(size)
    with_views = [known.name for known in NAMED_SETS.values() if known.views]
    if views != "separate" and name not in with_views:
        raise InputError(f"Only {', '.join(with_views)} have views, and {name} is not one: leave views out.")
    if name in NAMED_SETS:
        return read_named(str(name), split, data_dir, shape, views)
    if name == MINI:
        return read_npz(EMBEDDED, split, shape, MINI)
    if is_imported(name):
        return read_imported(str(name), split, shape)
    path = own_path(name)
    if is_stored(path):
        return open_stored(path, split, shape, str(name)).whole()
    if path.is_dir():
        return read_folder(path, split, shape, str(name), skip_unreadable=skip_unreadable)
    return read_npz(path, split, shape, str(name))


def open_set(
    name: str | Path,
    split: str = "test",
    *,
    data_dir: str | Path | None = None,
    size: Size = None,
    skip_unreadable: bool = False,
) -> DataSet | StoredSet:
    """As `load_set`, but images that `store_set` wrote stay on disk and are read as they are asked for."""
    _check_paths(name, data_dir)
    check_choice("split", split, SPLITS)
    if name not in names() and not is_imported(name) and is_stored(path := own_path(name)):
        return open_stored(path, split, check_size(size), str(name))
    return load_set(name, split, data_dir=data_dir, size=size, skip_unreadable=skip_unreadable)


def find(name: str | Path, data_dir: str | Path | None = None) -> Path | None:
    """Where a data set would be read from, without downloading it; None if it is not on this machine.

    For a named set that is the folder of its training split, if the test split is here too; for a Dataset its module.
    """
    if name == MINI:
        return EMBEDDED
    if is_imported(name):
        return module_of(str(name))
    if name not in NAMED_SETS:
        return own_path(name)
    train, test = (locate(str(name), split, data_dir) for split in SPLITS)
    return train.images.parent if train and test else None


def _check_paths(name: object, data_dir: object) -> None:
    """Checks that data are named by words or a path, whatever a user wrote."""
    if not isinstance(name, str | Path):
        raise InputError(
            f"A data set is named by a text or a path, not by a {type(name).__name__}: use one of "
            f"{', '.join(names())}, or the path of your own."
        )
    if not isinstance(data_dir, str | Path | None):
        raise InputError(f"data_dir is the path of a folder, not a {type(data_dir).__name__}: give its path.")


def is_imported(name: str | Path) -> bool:
    """Whether `name` is a Dataset's import path, and no file's."""
    return is_import_path(name) and not user_path(name).exists()


def own_path(name: str | Path) -> Path:
    """The path of a user's own data, if there is something at it that can be data."""
    path = user_path(name)
    try:
        if name and (path.is_dir() or (path.is_file() and path.suffix.lower() == ".npz")):
            return path
        is_file = path.is_file()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): check the path and its permissions.") from error
    if is_file:
        raise InputError(f"{path} is neither an .npz file nor a folder of class folders: turn it into one of these.")
    if isinstance(name, Path) or path.suffix.lower() == ".npz" or len(path.parts) > 1:
        raise InputError(f"There is no file or folder {path}: correct the path, or use one of {', '.join(names())}.")
    also = ", a folder with one sub-folder of images a class, an .npz file, or package.module:name of a Dataset"
    check_choice("data set", name, names(), also=also)
    raise AssertionError("a known name is never looked for as a path")
