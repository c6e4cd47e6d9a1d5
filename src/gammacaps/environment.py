"""The machine that a figure was made on: its device and the versions of what ran there."""

import contextlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

import gammacaps
from gammacaps.errors import InputError


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"There is no device {name!r}: use auto, cpu, cuda or cuda:1.") from None
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise InputError(f"The device {name} is not on this machine: use --device cpu or auto.")
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"gammacaps runs on cpu and cuda devices, not on {name}: use --device cpu.")
    return device


def free_memory() -> int | None:
    """Bytes that a new process could take; None where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):  # elsewhere all that there is, free or not
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def describe_machine(device: str = "auto", *, processes: int = 1) -> dict[str, Any]:
    """Device and versions, as data beside every figure; and how many processes worked together, if several did."""
    chosen = pick_device(device)
    name = torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else platform.processor() or platform.machine()
    return {
        "device": chosen.type,
        "device_name": name,
        "threads": torch.get_num_threads(),
        **({"processes": processes} if processes > 1 else {}),
        "gammacaps": gammacaps.__version__,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "system": platform.system(),
    }
