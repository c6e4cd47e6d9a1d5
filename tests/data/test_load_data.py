from pathlib import Path

import pytest
import torch

from gammacaps.data import area_resize, find, load_data, load_set, names
from gammacaps.errors import InputError

MNIST_TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_names() -> None:
    parts = ("smallnorb-scaled", "smallnorb-choice", "smallnorb-unseen")
    assert names() == ("mnist", "fashion-mnist", "smallnorb", *parts, "fashion-mini")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "count"), [("mnist", "train", 60000), ("fashion-mnist", "test", 10000)])
def test_real_idx_sets(shared_data: Path, name: str, split: str, count: int) -> None:
    data = load_set(name, split, data_dir=shared_data)  # the md5 of both files is checked on the way
    assert data.images.shape == (count, 1, 28, 28)
    assert data.images.aminmax() == (0, 1)
    assert len(data.labels.bincount()) == len(data.class_names) == 10
    assert data.source.startswith(str(shared_data / name))
    if name == "fashion-mnist":
        assert data.labels.bincount().tolist() == [1000] * 10
        assert data.class_names[9] == "Ankle boot"
        assert data.labels[:3].tolist() == [9, 2, 1]


def test_real_mnist_test_split(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMMACAPS_DATA", str(shared_data))
    images, labels = load_data("mnist")
    assert labels.bincount().tolist() == MNIST_TEST_COUNTS
    assert images.mean().item() == pytest.approx(0.1325, abs=1e-4)  # the well-known mean of MNIST's test split


@pytest.mark.slow
def test_real_smallnorb(shared_data: Path) -> None:
    images, labels = load_data("smallnorb", data_dir=shared_data)
    assert images.shape == (48600, 1, 28, 28)
    assert labels.bincount().tolist() == [9720] * 5
    assert images.min() >= 0
    assert images.max() <= 1
    assert (labels[0::2] == labels[1::2]).all()
    both, pair_labels = load_data("smallnorb", data_dir=shared_data, views="channels", size=48)
    assert both.shape == (24300, 2, 48, 48)
    assert (pair_labels == labels[::2]).all()
    # Pair 7000 lies behind the first chunk of the resizing.
    torch.testing.assert_close(images[14000:14002, 0], area_resize(both[7000:7001], (28, 28))[0])


def test_all_real_sets_are_found(shared_data: Path) -> None:
    for name in ("mnist", "fashion-mnist", "smallnorb"):
        assert find(name, shared_data) == shared_data / name
        assert find(name, shared_data / name) == shared_data / name
        assert find(name) is None


def test_size_of_a_named_set() -> None:
    images, _ = load_data("fashion-mini")
    resized, _ = load_data("fashion-mini", size=[14, 10])
    torch.testing.assert_close(resized, area_resize(images, (14, 10)))
    assert load_data("fashion-mini", size=32)[0].shape == (500, 1, 32, 32)


ALSO = (
    "mnist, fashion-mnist, smallnorb, smallnorb-scaled, smallnorb-choice, smallnorb-unseen, fashion-mini, a folder "
    "with one sub-folder of images a class, an .npz file, or package.module:name of a Dataset."
)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "MNIST"}, f"There is no data set 'MNIST' (did you mean 'mnist'?): use one of {ALSO}"),
        (
            {"name": "fashion_mnist"},
            "There is no data set 'fashion_mnist' (did you mean 'fashion-mnist'?): use one",
        ),
        ({"name": "zzz"}, f"There is no data set 'zzz': use one of {ALSO}"),
        ({"name": ""}, "There is no data set '': use one of"),
        ({"name": "~nobody-of-this-name/zzz"}, "There is no file or folder ~nobody-of-this-name/zzz"),
        ({"name": "z" * 1000}, f"{'z' * 1000} can't be read (File name too long): check the path"),
        ({"name": Path("mnist")}, "There is no file or folder mnist: correct the path"),
        ({"name": "own/zzz"}, "There is no file or folder own/zzz: correct the path, or use one of mnist, "),
        ({"name": "zzz.npz"}, "There is no file or folder zzz.npz: correct the path"),
        ({"name": __file__}, f"{__file__} is neither an .npz file nor a folder of class folders"),
        ({"split": "tset"}, "There is no split 'tset' (did you mean 'test'?): use one of train, test."),
        ({"split": "validation"}, "There is no split 'validation': use one of train, test."),
        ({"views": "channel"}, "There is no way to give the views 'channel' (did you mean 'channels'?)"),
        (
            {"views": "channels"},
            "Only smallnorb, smallnorb-scaled, smallnorb-choice, smallnorb-unseen have views, and fashion-mini is not "
            "one: leave views out.",
        ),
        (
            {"size": 0},
            "The size 0 is not an image size: give one number or (height, width), each from 1 to 4096.",
        ),
        ({"size": (28,)}, "The size (28,) is not an image size"),
        ({"size": (28, 10**9)}, "The size (28, 1000000000) is not an image size"),
        ({"size": True}, "The size True is not an image size"),
    ],
)
def test_error_words(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as error:
        load_data(**{"name": "fashion-mini", **arguments})
    assert str(error.value).startswith(words)


def test_views_of_a_named_set_without_views() -> None:
    with pytest.raises(InputError, match=r"Only smallnorb, .* have views, and mnist is not one"):
        load_data("mnist", views="channels")


def test_find_own_data(tmp_path: Path) -> None:
    assert find(tmp_path) == tmp_path
    assert find("fashion-mini").name == "fashion-mini.npz"
    with pytest.raises(InputError, match=r"There is no data set 'smalnorb' .did you mean 'smallnorb'"):
        find("smalnorb")
