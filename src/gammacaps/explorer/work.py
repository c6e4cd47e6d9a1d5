"""Work off the page's thread: two lanes, so that what is slow never holds up what is quick; answers kept by content.

Whoever asks for what is being worked out already waits for that; what nobody waits for any more is stopped.
Once nothing has been asked for a while, the memory that work needed goes back to the system.
"""

import asyncio
import contextlib
import ctypes
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

Lane = Literal["quick", "slow"]
Tick = Callable[[int, int], None]  # passes done and passes in all; raises where nobody waits any more
Call = Callable[[Tick], bytes]

WAITING: dict[Lane, int] = {"quick": 256, "slow": 32}  # jobs in a lane, at most
KEPT = 4 * 2**20  # bytes of answers, packed to about a ninth
REST = 2.0  # seconds without work, after which memory is given back


class Busy(Exception):
    """The lane is full: come back later."""


class Stopped(Exception):
    """Nobody waits for this answer any more."""


class Job:
    """One answer in the making, for all who want it; each of them must leave."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.progress: tuple[int, int] | None = None
        self.wanted = 1
        self.stop = threading.Event()

    def leave(self) -> None:
        self.wanted -= 1
        if self.wanted == 0:
            self.stop.set()

    def run(self) -> tuple[bytes, bytes]:
        """In the lane's thread: the answer, and what is kept of it."""
        self.tick(0, 0)
        answer = self.call(self.tick)
        return answer, zlib.compress(answer, 1)

    def tick(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopped
        self.progress = (done, total) if total else None


class Work:
    """Both lanes, each with a thread of its own, and the answers kept. Lives in one event loop."""

    def __init__(self) -> None:
        self.lanes = {lane: ThreadPoolExecutor(1, thread_name_prefix=f"gammacaps-{lane}") for lane in WAITING}
        self.jobs: dict[Lane, dict[str, Job]] = {lane: {} for lane in WAITING}
        self.kept: OrderedDict[str, bytes] = OrderedDict()  # packed
        self.size = 0
        self.rest: asyncio.TimerHandle | None = None

    def find(self, key: str) -> bytes | None:
        """A kept answer."""
        if key not in self.kept:
            return None
        self.kept.move_to_end(key)
        return zlib.decompress(self.kept[key])

    def job(self, lane: Lane, key: str, call: Call) -> Job:
        """The job for a key, begun if there is none. Whoever calls this waits for it, and must leave it."""
        jobs = self.jobs[lane]
        found = jobs.get(key)
        if found is not None and not found.stop.is_set():
            found.wanted += 1
            return found
        if len(jobs) >= WAITING[lane]:
            raise Busy
        self._stay_awake()
        made = Job(call)
        # One that was stopped may still stand under this key until its thread has noticed.
        name = key if found is None else f"{key} {id(made)}"
        jobs[name] = made
        done = asyncio.get_running_loop().run_in_executor(self.lanes[lane], made.run)
        done.add_done_callback(lambda future: self._finish(lane, name, key, made, future))
        return made

    def _finish(self, lane: Lane, name: str, key: str, job: Job, future: "asyncio.Future[tuple[bytes, bytes]]") -> None:
        del self.jobs[lane][name]
        if not any(self.jobs.values()):
            self._stay_awake()
            self.rest = asyncio.get_running_loop().call_later(REST, self._rest)
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is None:
            self._keep(key, future.result()[1])
        if job.answer.done():
            return
        if error is None:
            job.answer.set_result(future.result()[0])
        elif isinstance(error, Stopped | asyncio.CancelledError):
            job.answer.cancel()
        else:
            job.answer.set_exception(error)
            job.answer.exception()  # seen, even where nobody is left to see it

    def _keep(self, key: str, packed: bytes) -> None:
        self.size += len(packed) - len(self.kept.pop(key, b""))
        self.kept[key] = packed
        while self.size > KEPT:
            _, gone = self.kept.popitem(last=False)
            self.size -= len(gone)

    def _stay_awake(self) -> None:
        if self.rest is not None:
            self.rest.cancel()

    def _rest(self) -> None:
        # In the slow lane's thread, since the page may ask for a tree in the meantime.
        asyncio.get_running_loop().run_in_executor(self.lanes["slow"], give_back)

    def close(self) -> None:
        """Stops all work; what was waiting is cancelled."""
        self._stay_awake()
        for jobs in self.jobs.values():
            for job in jobs.values():
                job.stop.set()
        for lane in self.lanes.values():
            lane.shutdown(wait=True, cancel_futures=True)


def give_back() -> None:
    """Gives unused memory back to the system: by itself the allocator keeps what a crowd of questions once needed."""
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU/Linux has this
        ctypes.CDLL("libc.so.6").malloc_trim(0)
