"""Damaged data and configurations: every reader gives data that is sound, or one sentence."""

import gzip
import io
import random
import re
import resource
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from fuzz.mutations import answer, both_ways, cases, of_bytes
from PIL import Image

from gammacaps.data import DataSet, load_set, open_set
from gammacaps.data.formats import parse_idx, read_content
from gammacaps.data.viewpoints import viewpoint_split
from gammacaps.errors import InputError

FIXED = np.random.default_rng(0)
PIXELS = FIXED.integers(0, 256, (12, 4, 6), np.uint8)
LABELS = np.arange(12) % 2
NAMES = np.array(["cat", "dog", "änderung"])


def check(data: DataSet | None) -> bool:
    """Whether there is data, which then is sound."""
    if data is None:
        return False
    assert data.images.dtype == torch.float32
    assert data.images.dim() == 4
    assert data.images.numel()
    assert data.images.min() >= 0
    assert data.images.max() <= 1
    assert data.labels.dtype == torch.int64
    assert data.labels.shape == data.images.shape[:1]
    assert data.labels.min() >= 0
    assert data.labels.max() < len(data.class_names)
    for name in data.class_names:
        assert type(name) is str
        assert len(name.encode().splitlines()) <= 1
    return True


def arrays(chance: random.Random) -> dict[str, np.ndarray]:
    """A small data set, of one of several kinds."""
    images = chance.choice(
        (PIXELS, PIXELS[:, None], PIXELS / 255, (PIXELS / 255).astype(">f4"), np.asfortranarray(PIXELS))
    )
    labels = LABELS.astype(chance.choice(("int64", "uint8", ">i2")))
    names = {"class_names": NAMES} if chance.random() < 0.7 else {}
    if chance.random() < 0.3:
        return {"images": images, "labels": labels, **names}
    return {
        "train_images": images,
        "train_labels": labels,
        "test_images": images[:4],
        "test_labels": labels[:4],
        **names,
    }


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


DESCRIPTIONS = (
    *(
        "'|u1'",
        "'<f4'",
        "'>f8'",
        "'<f2'",
        "'<f16'",
        "'<i8'",
        "'>u2'",
        "'|b1'",
        "'<c8'",
        "'<U3'",
        "'>U1'",
        "'<U0'",
        "'|S5'",
    ),
    *("'|O'", "'|V8'", "'<M8[s]'", "'<U999999999'", "'<f3'", "'a5'", "''", "'u1,u1'", "[('a', '<f4'), ('b', '|O')]"),
    *("('<f4', (2, 3))", "None", "'\\d'", "b'u1'", "'\\x00'", "u'|u1'", "'<i99999999999999999999'"),
)
SHAPES = (
    *(
        "()",
        "(0,)",
        "(12,)",
        "(-1,)",
        "(12, 4, 6)",
        "(12, 24)",
        "(288,)",
        "(4, 4, 6)",
        "(99999999999999, 9999999)",
        "12",
    ),
    *(
        "(12L, 4L, 6L)",
        "(12., 4)",
        "(True, 288)",
        "(" + "1, " * 70 + ")",
        "(" + "9" * 5000 + ",)",
        "[12, 4, 6]",
        "None",
    ),
    *("(12, 4, 6", "(2**70,)", "(0, 99999999999999999, 99999999999)", "(,)", "(((((12)))))", "(1 2)", "(1,,2)", "(٣,)"),
)


def damaged_npy(content: bytes, chance: random.Random) -> bytes:
    """An `.npy` file with a damaged header or body, or with another header of the right length."""
    kind = chance.random()
    start = 10 + int.from_bytes(content[8:10], "little")
    if kind < 0.4:
        return of_bytes(content, chance, among=start)
    if kind < 0.5:
        return content[:start] + of_bytes(content[start:], chance)
    header = content[10:start].decode("latin1")
    if kind < 0.9:
        value, pattern = chance.choice(
            (
                (chance.choice(DESCRIPTIONS), r"(?<='descr': )'[^']*'"),
                (chance.choice(SHAPES), r"(?<='shape': )\([^)]*\)"),
            )
        )
        header = re.sub(pattern, lambda _: value, header)
    else:
        header = chance.choice(
            ("", "{", "}", "{}", "'", "\\", "\0" * 90, "(" * 9000, "{" * 3000, "[" * 99, "f''", "1\n 2\n3")
        )
    version = chance.choice((1, 1, 1, 2, 3))
    length = struct.pack("<H" if version == 1 else "<I", len(header.encode("utf-8")[:65535]))
    return b"\x93NUMPY" + bytes((version, 0)) + length + header.encode("utf-8")[:65535] + content[start:]


def zipped(members: list[tuple[str, bytes]], method: int) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(content, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)  # of two members of one name
        for name, member in members:
            archive.writestr(zipfile.ZipInfo(name), member, method)
    return content.getvalue()


def damaged_npz(chance: random.Random) -> bytes:
    """Damage to the archive, or to a member within a sound archive."""
    members = [(f"{key}.npy", npy(each)) for key, each in arrays(chance).items()]
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    kind = chance.random()
    if kind < 0.4:
        return of_bytes(zipped(members, method), chance)
    if kind < 0.45:  # the list at the end, where sizes, methods and flags stand
        content = zipped(members, method)
        at = content.index(b"PK\x01\x02")
        return content[:at] + of_bytes(content[at:], chance)
    place = chance.randrange(len(members))
    name, member = members[place]
    if kind < 0.5:
        method = chance.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    elif kind < 0.55:
        members[place] = (
            chance.choice(("x\x1b[2J.npy", "../../x.npy", "", "images", "class_names.npy", "ä" * 9)),
            member,
        )
    elif kind < 0.6:
        del members[place]
    else:
        members[place] = (name, damaged_npy(member, chance))
    return zipped(members, method)


@pytest.mark.slow
def test_npz(tmp_path: Path) -> None:
    path, found = tmp_path / "own.npz", []
    for chance in cases("npz"):
        path.write_bytes(damaged_npz(chance))
        split, size = chance.choice(("train", "test")), chance.choice((None, 3))
        found.append(check(answer(lambda split=split, size=size: load_set(path, split, size=size))))
    both_ways(found)


@pytest.mark.slow
def test_stored_folders(tmp_path: Path) -> None:
    found = []
    for number, chance in enumerate(cases("stored")):
        folder = tmp_path / str(number)
        folder.mkdir()
        members = {key: npy(PIXELS[: len(each)] if "images" in key else each) for key, each in arrays(chance).items()}
        broken = chance.choice(list(members))
        members[broken] = (
            damaged_npy(members[broken], chance) if chance.random() < 0.7 else of_bytes(members[broken], chance)
        )
        for key, content in members.items():
            (folder / f"{key}.npy").write_bytes(content)
        split, size = chance.choice(("train", "test")), chance.choice((None, 3))
        found.append(check(answer(lambda folder=folder, split=split, size=size: load_set(folder, split, size=size))))
        stored = answer(lambda folder=folder, split=split: open_set(folder, split))
        assert stored is None or len(stored.images[:2]) <= 2
    both_ways(found)


@pytest.mark.slow
def test_idx(tmp_path: Path) -> None:
    path, found = tmp_path / "idx", []
    sound = [
        struct.pack(">HBB3I", 0, 8, 3, *PIXELS.shape) + PIXELS.tobytes(),
        struct.pack(">HBBI", 0, 8, 1, 12) + bytes(LABELS.tolist()),
        struct.pack(">HBB2I", 0, 13, 2, 3, 2) + np.arange(6, dtype=">f4").tobytes(),
    ]
    for chance in cases("idx"):
        content = chance.choice(sound)
        kind = chance.random()
        if kind < 0.5:
            content = of_bytes(content, chance, among=16)
        elif kind < 0.75:
            content = gzip.compress(of_bytes(content, chance, among=16), mtime=0)
        else:
            content = of_bytes(gzip.compress(content, mtime=0), chance)
        path.write_bytes(content)
        array = answer(lambda: parse_idx(read_content(path), path))
        assert array is None or (array.dtype.isnative and array.size <= 10_000)
        found.append(array is not None)
    both_ways(found)


def norb(array: np.ndarray) -> bytes:
    magic = 0x1E3D4C55 if array.dtype == np.uint8 else 0x1E3D4C54
    sizes = (*array.shape, 1, 1)[: max(3, array.ndim)]
    return struct.pack(f"<II{len(sizes)}I", magic, array.ndim, *sizes) + array.tobytes()


@pytest.mark.slow
def test_smallnorb(tmp_path: Path) -> None:
    sound = {
        "dat": norb(FIXED.integers(0, 256, (6, 2, 8, 8), np.uint8)),
        "cat": norb(np.arange(6, dtype=np.int32) % 5),
    }
    found = []
    for number, chance in enumerate(cases("smallnorb")):
        folder = tmp_path / str(number)
        folder.mkdir()
        broken = chance.choice(("dat", "cat"))
        for part, content in sound.items():
            content = of_bytes(content, chance, among=28) if part == broken else content
            packed = chance.random() < 0.5
            content = gzip.compress(content, mtime=0) if packed else content
            content = of_bytes(content, chance) if packed and part == broken and chance.random() < 0.3 else content
            (folder / f"smallnorb48-training-{part}.mat{'.gz' if packed else ''}").write_bytes(content)
        views, size = chance.choice(("separate", "channels")), chance.choice((None, 5))
        found.append(
            check(
                answer(
                    lambda folder=folder, views=views, size=size: load_set(
                        "smallnorb", "train", data_dir=folder, views=views, size=size
                    )
                )
            )
        )
    both_ways(found)


FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "TGA", "ICO", "PCX")


@pytest.mark.slow
def test_folders_of_images(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for k in range(5):
            Image.fromarray(FIXED.integers(0, 256, (8, 9), np.uint8)).save(tmp_path / name / f"{k}.png")
    sound = []
    for kind in FORMATS:
        for mode in ("L", "RGB", "P"):
            content = io.BytesIO()
            picture = Image.fromarray(FIXED.integers(0, 256, (8, 9, 3), np.uint8)).convert(mode)
            (picture if mode != "P" or kind not in ("JPEG", "WEBP", "PPM") else picture.convert("L")).save(
                content, kind
            )
            sound.append(content.getvalue())
    found = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for chance in cases("folders"):
        content = chance.choice(sound)
        (tmp_path / "dog" / "0.png").write_bytes(of_bytes(content, chance, among=chance.choice((None, 60))))
        size = chance.choice((None, 4, 4))
        # Pillow asks for as much as a chunk says it has, up to 4 GiB, which the system gives only as it is filled.
        found.append(check(answer(lambda size=size: load_set(tmp_path, "train", size=size), memory=2**33)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 2**10  # KiB
    both_ways(found)


@pytest.mark.slow
def test_the_rule_itself() -> None:
    """What is no answer and no sentence fails."""
    assert answer(lambda: 3) == 3

    def sentence() -> None:
        raise InputError("There is no such thing: give another.")

    assert answer(sentence) is None
    with pytest.raises(ZeroDivisionError):
        answer(lambda: 1 / 0)
    with pytest.raises(AssertionError, match="MiB"):
        answer(lambda: len(bytes(2**21)), memory=2**20)
    with pytest.raises(AssertionError, match="it warns"):
        answer(lambda: np.float32(1) / np.float32(0))


@pytest.mark.slow
def test_smallnorb_viewpoints(tmp_path: Path) -> None:
    views = np.array([(toy, k % 9, 2 * (k % 18), 0) for toy in range(4) for k in range(18)], np.int32)
    for split in ("training", "testing"):
        images, labels = np.zeros((len(views), 2, 1, 1), np.uint8), np.zeros(len(views), np.int32)
        for kind, array in (("dat", images), ("cat", labels)):
            (tmp_path / f"smallnorb48-{split}-{kind}.mat").write_bytes(norb(array))
    found = []
    for chance in cases("smallnorb viewpoints"):
        content = of_bytes(norb(views), chance, among=24 if chance.random() < 0.5 else None)
        (tmp_path / "smallnorb48-testing-info.mat").write_bytes(content)
        split = answer(lambda: viewpoint_split("elevation", data_dir=tmp_path, size=1))
        found.append(split is not None)
        for part in () if split is None else (split.train, split.familiar, split.new):
            assert check(part.data)
            assert part.toys.shape == part.data.labels.shape
    both_ways(found)
