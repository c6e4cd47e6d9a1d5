import io
import re
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gammacaps.data import load_data, load_set
from gammacaps.data.split import rank_in_class
from gammacaps.errors import InputError

STEADY = settings(deadline=None, derandomize=True)
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 4, 6), np.uint8)
LABELS = np.array([0, 1] * 6)


def split_arrays(**changes: object) -> dict[str, object]:
    arrays = {
        "train_images": PIXELS,
        "train_labels": LABELS,
        "test_images": PIXELS[:4],
        "test_labels": LABELS[:4],
    }
    return {key: value for key, value in {**arrays, **changes}.items() if value is not None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own.npz"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_split_file(path: Path, save) -> None:
    save(path, **split_arrays())
    train, test = load_set(path, "train"), load_set(str(path))
    torch.testing.assert_close(train.images, torch.tensor(PIXELS / 255, dtype=torch.float32)[:, None])
    assert test.labels.tolist() == [0, 1, 0, 1]
    assert test.class_names == ("0", "1")
    assert test.source == str(path)


def test_every_fifth_of_each_class_is_for_testing(path: Path) -> None:
    labels = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0])
    np.savez(path, images=PIXELS, labels=labels)
    test, test_labels = load_data(path)
    # The fifth 0 stands at index 6, the fifth 1 at index 9.
    assert test_labels.tolist() == [0, 1]
    np.testing.assert_array_equal((test[:, 0] * 255).round().numpy(), PIXELS[[6, 9]])
    train, train_labels = load_data(path, "train")
    assert train_labels.tolist() == np.delete(labels, [6, 9]).tolist()
    np.testing.assert_array_equal((train[:, 0] * 255).round().numpy(), np.delete(PIXELS, [6, 9], 0))


@STEADY
@given(st.lists(st.integers(0, 3), max_size=30))
def test_rank_in_class(labels: list[int]) -> None:
    slow = [labels[:i].count(label) for i, label in enumerate(labels)]
    assert rank_in_class(np.array(labels, np.int64)).tolist() == slow


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((12, 4, 6), (1, 4, 6)),
        ((12, 1, 4, 6), (1, 4, 6)),
        ((12, 3, 4, 6), (3, 4, 6)),
        ((12, 2, 4, 6), (2, 4, 6)),
        ((12, 4, 6, 1), (1, 4, 6)),
        ((12, 4, 6, 3), (3, 4, 6)),
        ((12, 3, 3, 3), (3, 3, 3)),  # both fit: channels first wins
    ],
)
def test_layouts(path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    images = RNG.random(shape, np.float32)
    np.savez(path, **split_arrays(train_images=images, test_images=images, test_labels=LABELS))
    loaded, _ = load_data(path)
    assert tuple(loaded.shape[1:]) == expected
    if shape == (12, 4, 6, 3):
        assert loaded[5, 2, 1, 3] == images[5, 1, 3, 2]


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f8", "longdouble"])
def test_float_images_of_any_width_and_order(path: Path, dtype: str) -> None:
    images = np.asfortranarray(PIXELS.astype(dtype) / 256)
    np.savez(path, **split_arrays(train_images=images, test_images=images, test_labels=LABELS.astype(">u2")))
    loaded, labels = load_data(path)
    np.testing.assert_array_equal(loaded[:, 0].numpy(), PIXELS.astype(np.float32) / 256)
    assert labels.tolist() == LABELS.tolist()


def test_size_resizes_and_stays_in_range(path: Path) -> None:
    np.savez(path, **split_arrays(train_images=np.full((12, 9, 9), 255, np.uint8), test_images=PIXELS[:4]))
    assert load_data(path, "train", size=7)[0].max() <= 1
    assert load_data(path, "test", size=(2, 3))[0].shape == (4, 1, 2, 3)


def test_class_names(path: Path) -> None:
    np.savez(path, **split_arrays(class_names=np.array(["cat", "dog", "änderung"])))
    assert load_set(path).class_names == ("cat", "dog", "änderung")


def changed(**changes: object) -> dict[str, object]:
    return split_arrays(**changes)


def floats(value: float) -> np.ndarray:
    images = np.full((12, 4, 6), 0.5)
    images[7, 2, 3] = value
    return images


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            changed(test_labels=None),
            "{} lacks test_labels (it holds train_images, train_labels, test_images): store",
        ),
        (
            {"pictures": PIXELS},
            "{} lacks images, labels (it holds pictures): store the arrays train_images, ",
        ),
        ({}, "{} lacks images, labels (it holds nothing)"),
        (
            changed(train_images=PIXELS.astype(int)),
            "train_images of {} have the dtype int64: store bytes (uint8",
        ),
        (changed(train_images=PIXELS[0]), "train_images of {} have the shape (4, 6): store (N, H, W)"),
        (
            changed(train_images=PIXELS.reshape(12, 4, 3, 2)),
            "train_images of {} have the shape (12, 4, 3, 2)",
        ),
        (changed(train_images=PIXELS[:0], train_labels=LABELS[:0]), "train_images of {} have no pixels"),
        (
            changed(train_images=floats(np.nan)),
            "train_images of {}: image 7 is nan at channel 0, row 2, column 3",
        ),
        (changed(train_images=floats(-np.inf)), "train_images of {}: image 7 is -inf at"),
        (changed(train_images=floats(1e300)), "train_images of {}: image 7 is inf at"),
        (
            changed(train_images=floats(1.5)),
            "train_images of {}: image 7 is 1.5 at channel 0, row 2, column 3, but",
        ),
        (
            changed(train_labels=LABELS * 1.0),
            "train_labels of {} have the dtype float64: store whole numbers",
        ),
        (
            changed(train_labels=np.eye(12, dtype=int)),
            "train_labels of {} have the shape (12, 12): store one",
        ),
        (
            changed(train_labels=LABELS[:-1]),
            "{} has 12 train_images but 11 train_labels: give each image one label",
        ),
        (changed(train_labels=LABELS - 1), "train_labels of {}: label 0 is -1, which is no class number"),
        (
            changed(train_labels=LABELS * 10**9),
            "train_labels of {}: label 1 is 1000000000, which is no class",
        ),
        (changed(train_labels=LABELS * 0, test_labels=LABELS[:4] * 0), "{} has only one class"),
        (changed(class_names=np.array(["cat"])), "class_names of {} has 1 names, but the labels go up to 1"),
        (changed(class_names=np.array([1, 2])), "class_names of {} is not a list of strings"),
        (changed(class_names=np.array([None, 2])), "class_names.npy of {} holds Python objects: store plain"),
        (
            changed(test_images=np.zeros((4, 5, 6), np.uint8)),
            "{} has training images of the shape (1, 4, 6) and test images of (1, 5, 6) (channels",
        ),
        (
            {
                "images": PIXELS,
                "labels": np.array([0] * 9 + [1] * 3),
                "class_names": np.array(["cat", "dog"]),
            },
            "{} has no split of its own, and class 'dog' has 3 images, too few to put every 5th aside",
        ),
    ],
)
def test_error_words(path: Path, arrays: dict[str, np.ndarray], words: str) -> None:
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="^" + re.escape(words.format(path))):
        load_set(path, "train")


def test_channels_must_agree_even_with_a_size(path: Path) -> None:
    np.savez(path, **split_arrays(test_images=np.zeros((4, 3, 4, 6), np.uint8)))
    with pytest.raises(InputError, match="store both alike"):
        load_set(path, size=4)


def npy(header: str, body: bytes) -> bytes:
    padded = header.encode("latin1") + b" " * (-len(header) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + body


@pytest.mark.parametrize(
    "member",
    [
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 99999999999999, 9999999)}", b"12"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-4, -1)}", b"1234"),
        npy("{'descr': '<U0', 'fortran_order': False, 'shape': (99999999999999,)}", b""),
        npy("{'descr': '|u1', 'fortran_order': False}", b""),
        npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': ()}", b""),
        npy("__import__('os')", b""),
        b"\x93NUMPY\x09\x09",
        b"",
    ],
)
def test_hostile_members(path: Path, member: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", member)
    with pytest.raises(InputError, match=re.escape(str(path))):
        load_data(path)


def test_not_a_whole_zip(path: Path) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **split_arrays())
    for content in (b"", b"no zip", buffer.getvalue()[:-30]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"own.npz is not a whole .npz file \(.*\): write the file again"):
            load_data(path)


@STEADY
@given(position=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_changed_byte_gives_data_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **split_arrays())
    content = bytearray(buffer.getvalue())
    content[position % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    path.write_bytes(content)
    with suppress(InputError):
        assert load_set(path).images.shape == (4, 1, 4, 6)
