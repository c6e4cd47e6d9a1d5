"""The arrays of an `.npz` file, read without trusting it.

`numpy.load` allocates what a header asks for before it looks at the data; here the data goes first.
"""

import io
import lzma
import math
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

from gammacaps.data.formats import drain
from gammacaps.errors import InputError

# All that zipfile raises on damaged bytes.
DAMAGE = (
    *(OSError, EOFError, ValueError, RuntimeError, OverflowError, KeyError, IndexError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)
AGAIN = "write the file again by numpy.savez"


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays by their keys; none is unpickled."""
    members = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as stream:
                    members[member] = drain(stream.read, path)
    except InputError:
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise InputError(f"{path} can't be read ({error.strerror}): check the path and its permissions.") from error
    except DAMAGE as error:
        raise InputError(f"{path} is not a whole .npz file ({error}): {AGAIN}.") from error
    return {member.removesuffix(".npy"): _array(content, f"{member} of {path}") for member, content in members.items()}


def _array(content: bytearray, where: str) -> np.ndarray:
    stream = io.BytesIO(content)
    try:
        shape, fortran, dtype = _header(stream)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where} is not a numpy array ({error}): {AGAIN}.") from error
    if dtype.hasobject or dtype.itemsize == 0:
        raise InputError(f"{where} holds Python objects: store plain numbers, or strings of dtype str.")
    present = len(content) - stream.tell()
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != present:
        raise InputError(
            f"{where} is damaged: its header promises {shape} values of {dtype.itemsize} bytes, "
            f"and {present} bytes follow; {AGAIN}."
        )
    flat = np.frombuffer(content, dtype, offset=stream.tell())
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns go first, dtype."""
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)
