"""Routing in C for CPUs: compiled by the machine's own compiler at its first use, and kept in the user's cache.

A file's name there ends in the hash of its content, so that one which was cut off or changed is known before it is
loaded, and made again. Where there is no GCC the plain backend routes as before.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from gammacaps.errors import InputError
from gammacaps.files import write_whole

SOURCES = ("registers.c", "routing.c")  # compiled as one
FLAGS = (
    *("-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-fopenmp"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)


class Shape(ctypes.Structure):
    """As in routing.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("B", "I", "J", "d", "D", "r")),
        ("sda", ctypes.c_int),
        ("scale", ctypes.c_float),
        ("threads", ctypes.c_int),
    )


@functools.lru_cache
def library() -> ctypes.CDLL | None:
    """The compiled code, or None where it can't be had: no compiler, no place to keep it, another kind of system."""
    if platform.system() != "Linux":
        return None
    try:
        path = _built()
        _share_openmp()
        return ctypes.CDLL(str(path))
    except (OSError, InputError, subprocess.SubprocessError):
        return None


def _built() -> Path:
    """The library's file, compiled if no whole one is in the cache.

    Its name tells source, flags, compiler and processor, and then the content. Processes may compile it at once: each
    writes under a name of its own and renames, and a file that another has loaded stays with it.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise FileNotFoundError("There is no C compiler.")
    source = b"".join((files(__package__) / name).read_bytes() for name in SOURCES)
    made_by = f"{FLAGS}{Path(compiler).resolve()}{_processor()}".encode()
    folder, name = _cache(), f"routing-{_hash(source + made_by)[:16]}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"Others can write to {folder}, so nothing from there is run.")
    # A broken file is not deleted, only replaced: another process may have put a whole one there since.
    for path in folder.glob(f"{name}-*.so"):
        with contextlib.suppress(OSError):
            if path.name == f"{name}-{_hash(path.read_bytes())}.so":
                return path
    with tempfile.TemporaryDirectory() as elsewhere:
        there = Path(elsewhere) / "routing.so"
        command = [compiler, *FLAGS, "-x", "c", "-", "-o", str(there), "-lm"]
        subprocess.run(command, input=source, check=True, capture_output=True, timeout=120)
        code = there.read_bytes()
    path = folder / f"{name}-{_hash(code)}.so"
    write_whole(path, code)
    return path


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _cache() -> Path:
    import pooch

    return Path(pooch.os_cache("gammacaps")) / "native"


def _processor() -> str:
    """What the compiler's "native" stands for here."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return platform.machine()


def _share_openmp() -> None:
    """Torch brings its own OpenMP: with two in a process, threads of one would be in the way of the other's."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            if "libgomp" in line or "libomp" in line or "libiomp" in line:
                ctypes.CDLL(line.split(maxsplit=5)[-1], mode=ctypes.RTLD_GLOBAL)
                return
