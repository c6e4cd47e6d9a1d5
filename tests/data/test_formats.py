import gzip
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gammacaps.data import formats
from gammacaps.data.formats import parse_idx, parse_norb, read_content
from gammacaps.errors import InputError

STEADY = settings(deadline=None, derandomize=True)
IDX = struct.pack(">HBB3I", 0, 8, 3, 2, 1, 3) + bytes([1, 2, 3, 4, 5, 255])
GZIPPED = gzip.compress(IDX, mtime=0)  # without the time, so that tests are called the same in every process
NORB_BYTES = struct.pack("<II4I", 0x1E3D4C55, 4, 1, 2, 1, 2) + bytes([9, 8, 7, 255])
# One dimension, yet three sizes, as in smallNORB's own cat files.
NORB_INTS = struct.pack("<II3I", 0x1E3D4C54, 1, 2, 1, 1) + struct.pack("<2i", -5, 70000)

IDX_CODES = {
    "uint8": (8, "B"),
    "int8": (9, "b"),
    "int16": (11, "h"),
    "int32": (12, "i"),
    "float32": (13, "f"),
}


def read_idx(path: str | Path) -> np.ndarray:
    return parse_idx(read_content(path), path)


def read_norb(path: str | Path) -> np.ndarray:
    return parse_norb(read_content(path), path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_hand_made_bytes(path: Path, pack) -> None:
    path.write_bytes(pack(IDX))  # the name has no .gz either way
    assert read_idx(path).tolist() == [[[1, 2, 3]], [[4, 5, 255]]]
    path.write_bytes(pack(NORB_BYTES))
    assert read_norb(path).tolist() == [[[[9, 8]], [[7, 255]]]]
    path.write_bytes(pack(NORB_INTS))
    assert read_norb(str(path)).tolist() == [-5, 70000]


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


@pytest.mark.slow
@STEADY
@given(data=st.data(), kind=st.sampled_from(sorted(IDX_CODES)))
def test_idx_round_trip(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kind: str) -> None:
    array = data.draw(hnp.arrays(kind, shapes, elements={"allow_nan": False} if "f" in kind else None))
    code, letter = IDX_CODES[kind]
    path = tmp_path_factory.getbasetemp() / "idx"
    path.write_bytes(
        struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
        + struct.pack(f">{array.size}{letter}", *array.ravel().tolist())
    )
    back = read_idx(path)
    assert back.dtype == array.dtype
    assert back.dtype.isnative
    np.testing.assert_array_equal(back, array)


@pytest.mark.slow
@STEADY
@given(array=hnp.arrays("uint8", shapes) | hnp.arrays("int32", shapes))
def test_norb_round_trip(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    magic, letter = (0x1E3D4C55, "B") if array.dtype == np.uint8 else (0x1E3D4C54, "i")
    sizes = [*array.shape, 1, 1][: max(3, array.ndim)]
    path = tmp_path_factory.getbasetemp() / "norb"
    path.write_bytes(
        struct.pack(f"<II{len(sizes)}I", magic, array.ndim, *sizes)
        + struct.pack(f"<{array.size}{letter}", *array.ravel().tolist())
    )
    back = read_norb(path)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


BAD = [
    (b"", "is empty: fetch it again"),
    (b"\x00", "ends within its header, after 1 bytes"),
    (IDX[:9], "ends within its header, after 9 bytes"),
    (b"PK\x03\x04 no idx", "is not an IDX file (it starts with 504b0304)"),
    (struct.pack(">HBB", 0, 7, 1), "is not an IDX file"),  # no type has the number 7
    (struct.pack(">HBB", 0, 8, 0), "is not an IDX file"),
    (struct.pack(">HBB", 0, 8, 200) + bytes(1000), "is not an IDX file"),
    (IDX[:-1], "is cut short: its header promises 2 x 1 x 3 values in 6 bytes, and 5 bytes follow"),
    (IDX + b"x", "is too long: its header promises 2 x 1 x 3 values in 6 bytes, and 7 bytes follow"),
    # 2^96 bytes: must be refused without an attempt to hold them.
    (struct.pack(">HBB3I", 0, 8, 3, *[2**32 - 1] * 3), "is cut short"),
    (GZIPPED[:-9], "is a cut or damaged gzip file"),
    (
        gzip.compress(IDX, mtime=0)[:14] + b"\xff\xff\xff" + gzip.compress(IDX, mtime=0)[17:],
        "is a cut or damaged gzip file",
    ),
    (GZIPPED + b"rest", "is a cut or damaged gzip file"),
    (b"\x1f\x8b", "is a cut or damaged gzip file"),
    (gzip.compress(b"", mtime=0), "is empty"),
]


@pytest.mark.parametrize(("content", "words"), BAD)
def test_bad_idx(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_idx(path)
    assert str(error.value).startswith(f"{path} {words}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (IDX, "is not a smallNORB matrix of bytes or 32-bit integers (it starts with 0000080300000002)"),
        (NORB_INTS[:12], "ends within its header"),
        (NORB_INTS[:-1], "is cut short: its header promises 2 values in 8 bytes, and 7 bytes follow"),
        (NORB_BYTES + b"x", "is too long"),
        (struct.pack("<II3I", 0x1E3D4C54, 3, *[2**32 - 1] * 3), "is cut short"),
        (struct.pack("<II", 0x1E3D4C54, 2**32 - 1), "is not a smallNORB matrix"),
    ],
)
def test_bad_norb(path: Path, content: bytes, words: str) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_norb(path)
    assert str(error.value).startswith(f"{path} {words}")


def test_missing_file_and_folder(path: Path) -> None:
    with pytest.raises(InputError, match=r"file can't be read \(No such file or directory\): check the path"):
        read_idx(path)
    with pytest.raises(InputError, match=r"can't be read \(Is a directory\)"):
        read_norb(path.parent)


def test_gzip_bomb_stops_at_the_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LIMIT", 2**20)
    path.write_bytes(gzip.compress(bytes(2**23)))
    with pytest.raises(InputError, match=r"unpacks to more than 0.000976562 GiB"):
        read_idx(path)


@STEADY
@given(content=st.binary(max_size=60), packed=st.booleans())
def test_any_bytes_give_an_array_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    for read in (read_idx, read_norb):
        with suppress(InputError):
            assert isinstance(read(path), np.ndarray)
