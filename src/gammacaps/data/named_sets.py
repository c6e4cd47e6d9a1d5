"""The data sets that have a name, as a table: their files and hashes, where these are fetched, how they are read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gammacaps.data.checks import check_class_names
from gammacaps.data.formats import Content, read_idx_split, read_norb_split
from gammacaps.errors import InputError, check_choice, check_name_is_free

MINI = "fashion-mini"  # a sample of fashionMNIST that comes with the package
EMBEDDED = Path(__file__).with_name("fashion-mini.npz")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # what can't be taken for a path or an import path


@dataclass(frozen=True)
class File:
    """A file: its official name without `.gz`, pooch's hash of the `.gz`, the md5 of the content."""

    name: str
    packed: str | None = None
    content: str | None = None


@dataclass(frozen=True)
class SplitFiles:
    """The two files of a split, and of smallNORB a third, which says what its pairs show and which not all need."""

    images: File
    labels: File
    info: File | None = None


SplitReader = Callable[[Content, Content], tuple[np.ndarray, np.ndarray]]
"""The content of a split's files -> images, bytes (N, H, W) or (N, C, H, W), and labels, whole numbers (N,)."""


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A data set that is known by its name; `train` and `test` list its editions by preference."""

    name: str
    class_names: tuple[str, ...]
    train: tuple[SplitFiles, ...]
    test: tuple[SplitFiles, ...]
    url: str = ""  # the first edition's files, gzipped, are fetched from here; without it from nowhere
    read: SplitReader = read_idx_split
    size: tuple[int, int] | None = None  # what images are resized to unless the user says; None: not at all
    scaled: bool = False  # whether each image is scaled to mean 0 and deviation 1, as `data.scaled` says
    files_of: str = ""  # the set whose files it shares; without it its own
    toys: tuple[int, ...] = ()  # of smallNORB's test split: which of a class's toys, by its -info file; without it all
    mixed: bool = False  # whether its test images stand in no order, so that the first so many are a fair sample
    views: bool = False  # whether the channels are views of one thing, each of which can be an image of its own
    folders: tuple[str, ...] = ()  # where packages of the operating system put it
    credit: str = ""  # what a card calls it, with its licence
    research_only: str = ""  # its title, where it may be used for nothing but research
    # What people call some classes together, such as {"shoes": ("Sandal", "Sneaker")}: names for capsules.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def editions(self, split: str) -> tuple[SplitFiles, ...]:
        by_split = {"train": self.train, "test": self.test}
        check_choice("split", split, by_split)
        return by_split[split]


def _idx(split: str, hashes: tuple[str, str, str, str]) -> SplitFiles:
    packed_images, packed_labels, images, labels = hashes
    return SplitFiles(
        File(f"{split}-images-idx3-ubyte", f"md5:{packed_images}", images),
        File(f"{split}-labels-idx1-ubyte", f"md5:{packed_labels}", labels),
    )


def _norb(split: str, dat: str, cat: str, info: str) -> tuple[SplitFiles, SplitFiles]:
    instances = "46789" if split == "training" else "01235"
    official = f"smallnorb-5x{instances}x9x18x6x2x96x96-{split}"
    halved = f"smallnorb48-{split}"  # a copy of 48 x 48 pixels, which no server offers
    return (
        SplitFiles(
            File(f"{official}-dat.mat", f"sha256:{dat}"),
            File(f"{official}-cat.mat", f"sha256:{cat}"),
            File(f"{official}-info.mat", f"sha256:{info}"),
        ),
        SplitFiles(File(f"{halved}-dat.mat"), File(f"{halved}-cat.mat"), File(f"{halved}-info.mat")),
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
    "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32",
)
NORB_TEST = (
    "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474",
    "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff",
    "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2",
)

MNIST = NamedSet(
    name="mnist",
    url="https://ossci-datasets.s3.amazonaws.com/mnist/",
    class_names=tuple("0123456789"),
    train=(_idx("train", MNIST_TRAIN),),
    test=(_idx("t10k", MNIST_TEST),),
    mixed=True,
    credit="MNIST (CC BY-SA 3.0)",
    groups={  # by their shapes
        "digits with a loop": ("0", "6", "8", "9"),
        "digits of straight strokes": ("1", "4", "7"),
        "digits on one leg": ("1", "4", "7", "9"),
    },
)
FASHION = NamedSet(
    name="fashion-mnist",
    url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    class_names=(
        *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    train=(_idx("train", FASHION_TRAIN),),
    test=(_idx("t10k", FASHION_TEST),),
    mixed=True,
    folders=("/usr/share/datasets/fashion-mnist",),  # Debian's package dataset-fashion-mnist
    credit="fashionMNIST (Zalando SE, MIT)",
    groups={
        "shoes": ("Sandal", "Sneaker", "Ankle boot"),
        "closed shoes": ("Sneaker", "Ankle boot"),
        "clothes": ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Shirt"),
        "tops": ("T-shirt", "Pullover", "Shirt"),
        "clothes with sleeves": ("T-shirt", "Pullover", "Coat", "Shirt"),
        "clothes with long sleeves": ("Pullover", "Coat", "Shirt"),
        "warm clothes": ("Pullover", "Coat"),
        "long clothes": ("Trouser", "Dress"),
        "shirts": ("T-shirt", "Shirt"),
    },
)
SMALLNORB = NamedSet(
    name="smallnorb",
    url="https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/",
    class_names=("animal", "human", "airplane", "truck", "car"),
    train=_norb("training", *NORB_TRAIN),
    test=_norb("testing", *NORB_TEST),
    read=read_norb_split,
    size=(28, 28),  # the paper's network takes images of MNIST's size
    views=True,
    credit="smallNORB, scaled to 28 x 28 pixels (for research only; LeCun, Huang and Bottou, CVPR 2004),",
    research_only="smallNORB",
    groups={
        "living things": ("animal", "human"),
        "vehicles": ("airplane", "truck", "car"),
        "road vehicles": ("truck", "car"),
    },
)
# The same images in the scale that the paper's radii on smallNORB may be told in: see docs/decisions.md.
SMALLNORB_SCALED = replace(SMALLNORB, name="smallnorb-scaled", scaled=True, files_of="smallnorb")
# Its test images show other toys than its training images, which therefore can't stand for new ones. To choose by toys
# that training has not seen, and to report figures of toys that nothing was chosen by, the test's five are divided.
SMALLNORB_CHOICE = replace(SMALLNORB, name="smallnorb-choice", toys=(0, 1), files_of="smallnorb")
SMALLNORB_UNSEEN = replace(SMALLNORB, name="smallnorb-unseen", toys=(2, 3, 5), files_of="smallnorb")
NAMED_SETS = {
    data.name: data for data in (MNIST, FASHION, SMALLNORB, SMALLNORB_SCALED, SMALLNORB_CHOICE, SMALLNORB_UNSEEN)
}
OURS = (*NAMED_SETS, MINI)


def add_data_set(data: NamedSet) -> None:
    """Adds a data set of the user's own to the table: from then on it is known by its name, as ours are.

    Its files are gzipped or not, and are looked for and fetched as ours are; what is fetched has a hash. A set of one's
    own may be added again under its name, and is then replaced; those of gammacaps stay.
    """
    if not NAME.fullmatch(data.name):
        raise InputError(f"A data set can't be called {data.name!r}: use letters, digits, - and _.")
    check_name_is_free("a data set", data.name, OURS)
    if not data.train or not data.test:
        raise InputError(f"The data set {data.name} needs the files of a train and of a test split: give both.")
    if len(data.class_names) < 2:
        raise InputError(f"The data set {data.name} needs the names of at least two classes: give class_names.")
    check_class_names(data.class_names, f"The data set {data.name}")
    _check_groups(data)
    for files in (data.train[0], data.test[0]) if data.url else ():
        for file in (files.images, files.labels):
            if file.packed is None:
                raise InputError(
                    f"The data set {data.name} is fetched from {data.url}, but {file.name} has no hash to check it by: "
                    'give packed="sha256:...", the hash of the .gz file.'
                )
    NAMED_SETS[data.name] = data


def _check_groups(data: NamedSet) -> None:
    for group, members in data.groups.items():
        where = f"The group {group!r} of the data set {data.name}"
        if not group.strip():
            raise InputError(f"A group of the data set {data.name} has no name: give it one.")
        if len(set(members)) < 2:
            raise InputError(f"{where} needs the names of at least two classes: give them as a tuple.")
        for member in members:
            check_choice(f"class in the group {group!r}", member, data.class_names)


def groups_of(name: str) -> dict[str, tuple[str, ...]]:
    """The groups of classes that have a name in a data set; none where the set is not in the table."""
    data = FASHION if name == MINI else NAMED_SETS.get(name)
    return dict(data.groups) if data else {}


def is_mixed(name: str) -> bool:
    """Whether the first so many test images of a data set are a fair sample of it; of a user's own nobody knows."""
    return name == MINI or (name in NAMED_SETS and NAMED_SETS[name].mixed)


def names() -> tuple[str, ...]:
    """The names that `load_data` knows."""
    return (*NAMED_SETS, MINI)


def credit(name: str) -> str:
    """What a card calls the data that a network was trained on, with their licence where we know it."""
    if name == MINI:
        return f"a sample of {FASHION.credit}"
    return (NAMED_SETS[name].credit if name in NAMED_SETS else "") or name


def research_only(name: str) -> str:
    """The title of data that may be used for research alone; empty for others, as far as we know."""
    return NAMED_SETS[name].research_only if name in NAMED_SETS else ""
