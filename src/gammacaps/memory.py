"""Memory that the process has been given by the system: kept, or given back."""

import contextlib
import ctypes
import gc


def reuse_memory() -> None:
    """Keeps freed memory in the process: given back and fetched again at each step, it costs half of a CPU's time."""
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU/Linux has this
        libc = ctypes.CDLL("libc.so.6")
        m_trim_threshold, m_mmap_threshold = -1, -3
        libc.mallopt(m_mmap_threshold, 1 << 30)
        libc.mallopt(m_trim_threshold, (1 << 31) - 1)


def give_back() -> None:
    """Gives unused memory back to the system: by itself the allocator keeps what a crowd of questions once needed."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU/Linux has this
        ctypes.CDLL("libc.so.6").malloc_trim(0)
