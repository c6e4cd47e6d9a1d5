import io
import os
import re
import struct
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gammacaps.data import load_data, load_set
from gammacaps.data.npy import read_header
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
        (changed(train_labels=LABELS - 1), "train_labels of {}: label 0 is -1, which is not a class number"),
        (
            changed(train_labels=LABELS * 10**9),
            "train_labels of {}: label 1 is 1000000000, which is not a class",
        ),
        (changed(train_labels=LABELS * 0, test_labels=LABELS[:4] * 0), "{} has only one class"),
        (changed(class_names=np.array(["cat"])), "class_names of {} has 1 names, but the labels go up to 1"),
        (changed(class_names=np.array([1, 2])), "class_names of {} is not a list of strings"),
        (
            changed(class_names=np.array([None, 2])),
            "class_names of {} is not an array of plain numbers or of strings (it holds Python objects or records)",
        ),
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


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2**40,)}", "can't be understood"),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,)}", "promises (1099511627776,) values"),
        ("{'descr': '\\d', 'fortran_order': False, 'shape': (2,)}", "its dtype is unknown"),  # a SyntaxWarning in numpy
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (2", "can't be understood"),  # a TokenError in numpy
        ("{'descr': '|u1', 'fortran_order': 1, 'shape': (2,)}", "can't be understood"),
        ("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (2,)}", "Python objects or records"),
        ("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (2,)}", "its dtype is unknown"),
        ("{'descr': '<U9999999999', 'fortran_order': False, 'shape': (2,)}", "its dtype is unknown"),
        (f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({'1, ' * 70})}}", "it has 70 dimensions"),
        ("(" * 9000, "can't be understood"),
        (" " * 20_000, "cut short, or too long"),
    ],
)
def test_a_header_that_can_t_be_is_one_sentence(path: Path, header: str, words: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images.npy", npy(header, b"12"))
        archive.writestr("labels.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", b"12"))
    with pytest.raises(InputError, match=re.escape(words)):
        load_data(path)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["|u1", "<f8", ">f4", "<f2", "longdouble", "|b1", "<c8", "<U7", ">U3", "|S5", ">i2"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4, 5)])
def test_headers_that_numpy_writes_are_read(version: tuple[int, int], dtype: str, shape: tuple[int, ...]) -> None:
    for array in (np.zeros(shape, dtype), np.asfortranarray(np.zeros(shape, dtype))):
        content = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # later versions are for later numpys
            np.lib.format.write_array(content, array, version, allow_pickle=False)
        header = read_header(io.BytesIO(content.getvalue()).read, len(content.getvalue()))
        assert (header.shape, header.dtype) == (array.shape, array.dtype)
        assert header.fortran == (array.flags.f_contiguous and not array.flags.c_contiguous)
        assert content.getvalue()[header.start :] == array.tobytes("A")


def test_python_2_wrote_long_numbers(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for key, shape, body in (("images", "(10L, 2L, 1L)", bytes(20)), ("labels", "(10L,)", bytes([0, 1] * 5))):
            archive.writestr(f"{key}.npy", npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}", body))
    assert load_data(path)[0].shape == (2, 1, 2, 1)


def peak(action) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_what_is_not_needed_is_not_unpacked(path: Path) -> None:
    large = {f"unknown{k}": np.zeros(2**23, np.uint8) for k in range(5)}
    np.savez_compressed(path, **large)

    def refused() -> None:
        with pytest.raises(InputError, match=r"lacks images, labels \(it holds unknown0, unknown1, "):
            load_data(path)

    assert peak(refused) < 2**21
    many = np.zeros((2**20, 4, 6), np.uint8)
    np.savez_compressed(path, **split_arrays(test_images=many, test_labels=np.zeros(2**20, np.uint8), **large))
    assert peak(lambda: load_data(path, "train")) < 2**25 - 2**23  # labels as numbers of 8 bytes, and no images


def test_only_the_asked_split_s_images_are_unpacked(path: Path) -> None:
    many = np.full((1200, 4, 6), 7, np.uint8)  # more than is unpacked to see the header
    np.savez(path, **split_arrays(test_images=many, test_labels=np.tile(LABELS, 100)))
    path.write_bytes(path.read_bytes().replace(bytes([7] * 9), bytes(9), 1))
    assert len(load_data(path, "train")[0]) == 12
    with pytest.raises(InputError, match=r"own.npz is not a whole .npz file \(Bad CRC-32"):
        load_data(path, "test")


def test_what_can_t_fit_into_memory_is_refused_before_it_is_unpacked(path: Path, monkeypatch) -> None:
    np.savez_compressed(path, **split_arrays(train_images=np.zeros((12, 500, 500), np.uint8)), class_names=["a", "b"])
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)  # a machine of a million bytes

    def refused() -> None:
        with pytest.raises(
            InputError, match=r"own.npz needs 0.0 GiB of memory, but there are 0.0: give fewer or smaller"
        ):
            load_data(path, "train", size=20)

    assert peak(refused) < 2**20


def test_sizes_that_a_zip_can_t_hold(path: Path) -> None:
    np.savez_compressed(path, **split_arrays())
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")  # the first member in the list at the end, its size 24 bytes on
    content[at + 24 : at + 28] = struct.pack("<I", 2**31)
    path.write_bytes(content)
    with pytest.raises(InputError, match="train_images can't hold the 2,147,483,648 bytes that it promises"):
        load_data(path)


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (8, 1, "is encrypted"),
        (10, 12, "packed in another way than numpy packs"),  # bzip2
        (10, 14, "packed in another way than numpy packs"),  # lzma
        (10, 99, "packed in another way than numpy packs"),
        (42, 0x7FFFFFF0, "whole .npz file"),  # far behind the end
    ],
)
def test_zips_of_other_kinds(path: Path, offset: int, value: int, words: str) -> None:
    np.savez_compressed(path, **split_arrays())
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + offset
    content[at : at + (4 if value > 255 else 1)] = value.to_bytes(4 if value > 255 else 1, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        load_data(path)


def code_points(*names: tuple[int, ...]) -> np.ndarray:
    """Names that numpy itself would not make."""
    wide = max(map(len, names))
    return np.array([(*name, *[0] * (wide - len(name))) for name in names], np.uint32).view(f"<U{wide}")[:, 0]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (code_points((97, 98), (0xD800,)), r"the class name '\\ud800' has characters that can't be printed"),
        (code_points((97, 0, 98), (99,)), r"the class name 'a\\x00b' has characters that can't be printed"),
        (code_points((97,), (27, 91)), r"the class name '\\x1b\[' has characters"),
        (code_points((97,), (0x110000,)), "class_names of .* is damaged, it holds something that is not text"),
        (code_points((97,), (0xFFFFFFFF,)), "class_names of .* is damaged, it holds something that is not text"),
        (np.array(["a", "b" * 1001]), "has 2 names of up to 1,001 characters: store at most"),
        (np.full(2**16 + 1, "a"), "has 65,537 names of up to 1 characters: store at most"),
        (np.array("a"), "is not a list of strings"),
    ],
)
def test_class_names_that_can_t_be_printed(path: Path, names: np.ndarray, words: str) -> None:
    np.savez(path, **split_arrays(class_names=names))
    with pytest.raises(InputError, match=words):
        load_set(path)


def test_class_names_of_the_other_byte_order(path: Path) -> None:
    np.savez(path, **split_arrays(class_names=np.array(["cat", "änderung"]).astype(">U8")))
    assert load_set(path).class_names == ("cat", "änderung")


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
