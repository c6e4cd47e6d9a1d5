"""Readers of two binary formats: IDX (MNIST, fashionMNIST) and smallNORB's matrices, gzipped or not."""

import gzip
import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gammacaps.errors import InputError

LIMIT = 2**30  # bytes of content; the largest file of the paper's data sets has 0.45 GB
CHUNK = 2**20

IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
NORB_TYPES = {0x1E3D4C55: "u1", 0x1E3D4C54: "<i4"}
MOST_DIMENSIONS = 8


class Content(NamedTuple):
    """What is in a file, unpacked, and the file, so that an error can name it."""

    data: bytearray
    path: Path


def read_idx_split(images: Content, labels: Content) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, H, W) and labels (N,) of two IDX files."""
    return parse_idx(*images), parse_idx(*labels)


def read_norb_split(images: Content, labels: Content) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of views (N, 2, H, W) and labels (N,) of smallNORB's two files."""
    pixels, numbers = parse_norb(*images), parse_norb(*labels)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1] != 2 or pixels.size == 0:
        raise InputError(
            f"{images.path} holds {pixels.dtype} of the shape {pixels.shape}, not bytes of "
            "(pairs, 2, height, width): put smallNORB's own file there."
        )
    if numbers.dtype != np.int32 or numbers.ndim != 1:
        raise InputError(
            f"{labels.path} holds {numbers.dtype} of the shape {numbers.shape}, not one 32-bit label for each pair: "
            "put smallNORB's own file there."
        )
    return pixels, numbers


def parse_idx(content: bytearray, path: str | Path) -> np.ndarray:
    """Two zero bytes, type, number of dimensions, then big-endian sizes and values."""
    zeros, kind, dimensions = _unpack(">HBB", content, 0, path)
    if zeros != 0 or kind not in IDX_TYPES or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise InputError(f"{path} is not an IDX file (it starts with {content[:4].hex()}): put the right file there.")
    shape = _unpack(f">{dimensions}I", content, 4, path)
    return _array(content, 4 + 4 * dimensions, IDX_TYPES[kind], shape, path)


def parse_norb(content: bytearray, path: str | Path) -> np.ndarray:
    """Magic, number of dimensions, then little-endian sizes and values; one dimension has three sizes too."""
    magic, dimensions = _unpack("<II", content, 0, path)
    if magic not in NORB_TYPES or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise InputError(
            f"{path} is not a smallNORB matrix of bytes or 32-bit integers (it starts with "
            f"{content[:8].hex()}): put the right file there."
        )
    sizes = max(3, dimensions)
    shape = _unpack(f"<{sizes}I", content, 8, path)[:dimensions]
    return _array(content, 8 + 4 * sizes, NORB_TYPES[magic], shape, path)


def read_content(path: str | Path) -> bytearray:
    """All bytes of a file, unpacked if they are gzipped, which their first bytes tell, not the name."""
    try:
        with Path(path).open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            content = drain(gzip.GzipFile(fileobj=file).read if packed else file.read, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is a cut or damaged gzip file ({error}): fetch it again.") from error
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): check the path and its permissions.") from error
    if not content:
        raise InputError(f"{path} is empty: fetch it again.")
    return content


def drain(read: Callable[[int], bytes], path: str | Path) -> bytearray:
    """All that `read` gives, up to `LIMIT`, so that a small file can't unpack into all of the memory."""
    content = bytearray()
    while chunk := read(CHUNK):
        content += chunk
        if len(content) > LIMIT:
            raise InputError(f"{path} unpacks to more than {LIMIT / 2**30:g} GiB: put the right file there.")
    return content


def _unpack(layout: str, content: bytearray, offset: int, path: str | Path) -> tuple[int, ...]:
    if len(content) < offset + struct.calcsize(layout):
        raise InputError(f"{path} ends within its header, after {len(content)} bytes: fetch it again.")
    return struct.unpack_from(layout, content, offset)


def _array(content: bytearray, offset: int, kind: str, shape: tuple[int, ...], path: str | Path) -> np.ndarray:
    dtype = np.dtype(kind)
    promised, present = math.prod(shape) * dtype.itemsize, len(content) - offset
    if promised != present:
        sizes = " x ".join(map(str, shape))
        raise InputError(
            f"{path} is {'cut short' if present < promised else 'too long'}: its header promises {sizes} "
            f"values in {promised} bytes, and {present} bytes follow; fetch it again."
        )
    # A view of the content, copied only where the machine's byte order is another.
    return np.frombuffer(content, dtype, offset=offset).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
