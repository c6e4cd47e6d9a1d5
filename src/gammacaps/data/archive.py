"""The arrays of an `.npz` file, read without trusting it.

Names and headers are looked at first; only arrays that are asked for are unpacked.
"""

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from gammacaps.data.npy import Header, read_header
from gammacaps.errors import InputError

# All that zipfile raises on damaged bytes.
DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError, KeyError, IndexError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
AGAIN = "write the file again by numpy.savez"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # numpy's two
MOST_PACKED = 1032  # bytes that deflate can make of one
CHUNK = 2**20


class Arrays:
    """The arrays of an open `.npz` file by their keys; none is unpickled."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self._members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def look(self, key: str) -> np.ndarray:
        """An array of the shape and the dtype of that under the key, which takes no memory and has no values."""
        with _explained(self.path), self._open(key) as stream:
            header = self._header(key, stream)
            return np.broadcast_to(np.empty((), header.dtype), header.shape)

    def read(self, key: str) -> np.ndarray:
        """The array under a key."""
        with _explained(self.path), self._open(key) as stream:
            header = self._header(key, stream)
            flat = np.empty(header.bytes, np.uint8)  # the system gives the memory only as it is written to
            at = 0
            while chunk := stream.read(CHUNK):
                flat[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
                at += len(chunk)
            if at < header.bytes:
                raise EOFError(f"{key} is cut short")
            values = flat.view(header.dtype)
            return values.reshape(header.shape[::-1]).T if header.fortran else values.reshape(header.shape)

    def _open(self, key: str) -> zipfile.ZipExtFile:
        member = self._members[key]
        if member.compress_type not in METHODS:
            raise zipfile.BadZipFile(f"{key} is packed in another way than numpy packs")
        most = member.compress_size * (1 if member.compress_type == zipfile.ZIP_STORED else MOST_PACKED)
        if member.compress_size > self.path.stat().st_size or member.file_size > most:
            raise zipfile.BadZipFile(f"{key} can't hold the {member.file_size:,} bytes that it promises")
        return cast(zipfile.ZipExtFile, self._archive.open(member))  # declared as any stream

    def _header(self, key: str, stream: zipfile.ZipExtFile) -> Header:
        try:
            return read_header(stream.read, self._members[key].file_size)
        except ValueError as error:
            raise InputError(
                f"{key} of {self.path} is not an array of plain numbers or of strings ({error}): {AGAIN}."
            ) from error


@contextlib.contextmanager
def open_arrays(path: Path) -> Iterator[Arrays]:
    """The arrays of an `.npz` file, as long as it is open."""
    with contextlib.ExitStack() as stack:
        with _explained(path):
            arrays = Arrays(path, stack.enter_context(zipfile.ZipFile(path)))
        yield arrays


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns what a broken file raises into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise InputError(f"{path} can't be read ({error.strerror}): check the path and its permissions.") from error
    except DAMAGE as error:
        raise InputError(f"{path} is not a whole .npz file ({error}): {AGAIN}.") from error
