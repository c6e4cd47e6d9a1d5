"""Routing in C for CPUs: compiled by the machine's own compiler at its first use, and kept in the user's cache.

Where there is no compiler the plain backend routes as before.
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

SOURCE = "routing.c"
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
    except (OSError, subprocess.SubprocessError):
        return None


def _built() -> Path:
    """The library's file, compiled if it is not in the cache; its name tells source, flags, compiler and processor."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise FileNotFoundError("There is no C compiler.")
    source = (files(__package__) / SOURCE).read_bytes()
    told = f"{FLAGS}{Path(compiler).resolve()}{_processor()}".encode()
    path = _cache() / f"routing-{hashlib.sha256(source + told).hexdigest()[:16]}.so"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = path.parent.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"Others can write to {path.parent}, so nothing from there is run.")
    if not path.exists():
        # Processes may compile it at once: each under its own name, and the last one stays.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            there = Path(folder) / path.name
            command = [compiler, *FLAGS, "-x", "c", "-", "-o", str(there), "-lm"]
            subprocess.run(command, input=source, check=True, capture_output=True, timeout=120)
            there.replace(path)
    return path


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
