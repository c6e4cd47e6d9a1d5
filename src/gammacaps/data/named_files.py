"""Names of data sets to files: looked for on this machine first, else downloaded once and checked by hash."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gammacaps.errors import InputError

ENVIRONMENT = "GAMMACAPS_DATA"
EMBEDDED = Path(__file__).with_name("fashion-mini.npz")


@dataclass(frozen=True)
class File:
    """A file: its official name without `.gz`, pooch's hash of the `.gz`, the md5 of the content."""

    name: str
    packed: str | None = None
    content: str | None = None


@dataclass(frozen=True)
class Pair:
    """The two files of a split."""

    images: File
    labels: File


@dataclass(frozen=True)
class Entry:
    """A named data set; `train` and `test` list its editions by preference, the first being the download."""

    url: str
    class_names: tuple[str, ...]
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]
    folders: tuple[str, ...] = ()  # where packages of the operating system put it

    def editions(self, split: str) -> tuple[Pair, ...]:
        return self.train if split == "train" else self.test


@dataclass(frozen=True)
class Found:
    """A split's files on this machine."""

    images: Path
    labels: Path
    pair: Pair


def _idx(split: str, hashes: tuple[str, str, str, str]) -> Pair:
    packed_images, packed_labels, images, labels = hashes
    return Pair(
        File(f"{split}-images-idx3-ubyte", f"md5:{packed_images}", images),
        File(f"{split}-labels-idx1-ubyte", f"md5:{packed_labels}", labels),
    )


def _norb(split: str, dat: str, cat: str) -> tuple[Pair, Pair]:
    instances = "46789" if split == "training" else "01235"
    official = f"smallnorb-5x{instances}x9x18x6x2x96x96-{split}"
    halved = f"smallnorb48-{split}"  # a copy of 48 x 48 pixels, which no server offers
    return (
        Pair(File(f"{official}-dat.mat", f"sha256:{dat}"), File(f"{official}-cat.mat", f"sha256:{cat}")),
        Pair(File(f"{halved}-dat.mat"), File(f"{halved}-cat.mat")),
    )


# md5 of the packed images and labels, then of the unpacked ones; packing differs from copy to copy.
MNIST_TRAIN = (
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
)
MNIST_TEST = (
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)
FASHION_TRAIN = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "9018921c3c673c538a1fc5bad174d6f9",
)
FASHION_TEST = (
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
    "8181f5470baa50b63fa0f6fddb340f0a",
    "15d484375f8d13e6eb1aabb0c3f46965",
)
# sha256 of the packed dat and cat.
NORB_TRAIN = (
    "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873",
    "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa",
)
NORB_TEST = (
    "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474",
    "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff",
)

ENTRIES = {
    "mnist": Entry(
        url="https://ossci-datasets.s3.amazonaws.com/mnist/",
        class_names=tuple("0123456789"),
        train=(_idx("train", MNIST_TRAIN),),
        test=(_idx("t10k", MNIST_TEST),),
    ),
    "fashion-mnist": Entry(
        url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        class_names=(
            *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        train=(_idx("train", FASHION_TRAIN),),
        test=(_idx("t10k", FASHION_TEST),),
        folders=("/usr/share/datasets/fashion-mnist",),  # Debian's package dataset-fashion-mnist
    ),
    "smallnorb": Entry(
        url="https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/",
        class_names=("animal", "human", "airplane", "truck", "car"),
        train=_norb("training", *NORB_TRAIN),
        test=_norb("testing", *NORB_TEST),
    ),
}


def obtain(name: str, split: str, data_dir: str | Path | None = None) -> Found:
    """A split's files, downloaded into the cache if they are not on this machine."""
    return locate(name, split, data_dir) or _download(name, split)


def locate(name: str, split: str, data_dir: str | Path | None = None) -> Found | None:
    """A split's files if they are on this machine, both from the same folder and edition."""
    try:
        for folder in _folders(name, data_dir):
            for pair in ENTRIES[name].editions(split):
                images, labels = _present(folder, pair.images), _present(folder, pair.labels)
                if images and labels:
                    return Found(images, labels, pair)
    except OSError as error:
        raise InputError(
            f"{error.filename} can't be read ({error.strerror}): check the path and its permissions."
        ) from error
    return None


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
            yield root / name
            yield root
    yield from map(Path, ENTRIES[name].folders)
    yield _cache(name)


def _present(folder: Path, file: File) -> Path | None:
    paths = (folder / f"{file.name}.gz", folder / file.name)
    return next((path for path in paths if path.is_file()), None)


def _cache(name: str) -> Path:
    import pooch  # only here, since it takes a moment and is not needed where the files are at hand

    return Path(pooch.os_cache("gammacaps")) / name


def _download(name: str, split: str) -> Found:
    pair = ENTRIES[name].editions(split)[0]
    instead = (
        f"put {pair.images.name}.gz and {pair.labels.name}.gz into a folder and name it by --data-dir or {ENVIRONMENT}"
    )
    return Found(_retrieve(name, pair.images, instead), _retrieve(name, pair.labels, instead), pair)


def _retrieve(name: str, file: File, instead: str) -> Path:
    import pooch

    url = f"{ENTRIES[name].url}{file.name}.gz"
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
