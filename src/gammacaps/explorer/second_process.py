"""A second process that answers parses too while many wait: a process runs one thread of Python, and drawing is Python.

It is a fork, so that it shares the networks' memory, and is made before the server has any thread.
"""

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import warnings
from collections.abc import Sequence

import torch

from gammacaps.explorer.jobs.queue import answer_each
from gammacaps.explorer.networks import Network
from gammacaps.explorer.questions import ParseQuestion
from gammacaps.explorer.server import parse_calls
from gammacaps.memory import give_back

shown: Sequence[Network] = ()  # in the second process


class Helper:
    def __init__(self, networks: Sequence[Network], listener: socket.socket) -> None:
        fork = multiprocessing.get_context("fork")
        given = (networks, listener)
        self.pool = concurrent.futures.ProcessPoolExecutor(1, fork, initializer=begin, initargs=given)
        with warnings.catch_warnings():
            # Of threads that the fork lacks: torch's, which it does without.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pool.submit(os.getpid).result()

    def answer(self, asked: Sequence[ParseQuestion]) -> list[bytes | Exception]:
        """Answers questions of one group. Raises BrokenProcessPool where the process has died."""
        return self.pool.submit(answer, asked).result()

    def rest(self) -> None:
        """Gives memory back."""
        with contextlib.suppress(RuntimeError):  # it has died or is closed
            self.pool.submit(give_back)

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def helper_for(networks: Sequence[Network], listener: socket.socket) -> Helper | None:
    """A helper where one is of use: on Linux, with a second core, for networks on the CPU."""
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        return None
    on_cpu = all(network.images.device.type == "cpu" for network in networks)
    return Helper(networks, listener) if on_cpu else None


def begin(networks: Sequence[Network], listener: socket.socket) -> None:
    global shown
    shown = networks
    listener.close()  # which is the server's
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal goes to both: the server ends this one
    with contextlib.suppress(OSError, AttributeError):
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)  # nor does it outlive a server that was killed


def answer(asked: Sequence[ParseQuestion]) -> list[bytes | Exception]:
    return list(answer_each(parse_calls(shown), asked))
