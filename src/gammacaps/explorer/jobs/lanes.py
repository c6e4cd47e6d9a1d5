"""The two lanes and the answers kept: what the server asks, and what refuses when there is too much."""

import asyncio
import contextlib
import itertools
import math
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from gammacaps.explorer.jobs.job import Call, Calls, Job, Stopped
from gammacaps.explorer.jobs.kept import KeptAnswers, pack
from gammacaps.explorer.jobs.queue import Helps, Queue, serve
from gammacaps.memory import give_back

Lane = Literal["quick", "slow"]

WAITING: dict[Lane, int] = {"quick": 1024, "slow": 32}  # jobs in a lane, at most
PATIENCE: dict[Lane, float] = {"quick": 10.0, "slow": math.inf}  # seconds to wait in a lane, as far as can be foreseen
REST = 2.0  # seconds without work, after which memory is given back


class Busy(Exception):
    """The lane is full: come back after so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Lanes:
    """Both lanes, each with a thread of its own, and the answers kept. Lives in one event loop.

    A helper serves the quick lane too, whenever that has more to do than one thread can take.
    """

    def __init__(self, helper: Helps | None = None) -> None:
        self.queues: dict[Lane, Queue] = {"quick": Queue(helper), "slow": Queue()}
        self.threads = {
            lane: ThreadPoolExecutor(queue.threads, thread_name_prefix=f"gammacaps-{lane}")
            for lane, queue in self.queues.items()
        }
        self.packer = ThreadPoolExecutor(1, thread_name_prefix="gammacaps-pack")
        self.jobs: dict[Lane, dict[str, Job]] = {lane: {} for lane in WAITING}
        self.kept = KeptAnswers()
        self.numbers = itertools.count()
        self.rest: asyncio.TimerHandle | None = None

    def find(self, key: str) -> bytes | None:
        """A kept answer."""
        return self.kept.find(key)

    def job(self, lane: Lane, key: str, call: Call) -> Job:
        """The job for a key, begun if there is none. Whoever calls this waits for it, and must leave it."""
        return self.share(lane, key, None, None, lambda _: [call])

    def share(self, lane: Lane, key: str, group: Hashable, question: Any, calls: Calls) -> Job:
        """As `job`, for a question that may share a pass with others of its group that wait at the same time."""
        jobs, queue = self.jobs[lane], self.queues[lane]
        same = jobs.get(key)
        if same is not None and not same.stop.is_set():
            same.wanted += 1
            return same
        # What was left is passed over in no time.
        seconds = queue.pace / queue.threads * sum(not job.stop.is_set() for job in jobs.values())
        if len(jobs) >= WAITING[lane] or seconds > PATIENCE[lane]:
            raise Busy(math.ceil(max(1.0, seconds - PATIENCE[lane])))
        self._stay_awake()
        # One that was stopped may still stand under this key until its thread has noticed.
        name = key if same is None else f"{key} {next(self.numbers)}"
        made = jobs[name] = Job(key, name, group, question, calls)
        queue.put(made)
        loop = asyncio.get_running_loop()

        def finish(job: Job, result: bytes | Exception) -> None:
            packed = pack(result) if isinstance(result, bytes) else b""
            with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody has gone
                loop.call_soon_threadsafe(self._finish, lane, job, result, packed)

        # In a thread of its own, since packing needs none of what the lane's thread has to wait for.
        self.threads[lane].submit(serve, queue, lambda *done: self.packer.submit(finish, *done))
        return made

    def _finish(self, lane: Lane, job: Job, result: bytes | Exception, packed: bytes) -> None:
        self.jobs[lane].pop(job.name, None)
        if not any(self.jobs.values()):
            self._stay_awake()
            self.rest = asyncio.get_running_loop().call_later(REST, self._rest)
        if isinstance(result, bytes):
            self.kept.keep(job.key, packed)
        if job.answer.done():
            return
        if isinstance(result, bytes):
            job.answer.set_result(result)
        elif isinstance(result, Stopped):
            job.answer.cancel()
        else:
            job.answer.set_exception(result)
            job.answer.exception()  # seen, even where nobody is left to see it

    def _stay_awake(self) -> None:
        if self.rest is not None:
            self.rest.cancel()

    def _rest(self) -> None:
        # In the slow lane's thread, since the page may ask for a tree in the meantime.
        asyncio.get_running_loop().run_in_executor(self.threads["slow"], give_back)
        if (helper := self.queues["quick"].helper) is not None:
            helper.rest()

    def close(self) -> None:
        """Stops all work; what was waiting is cancelled."""
        self._stay_awake()
        for jobs in self.jobs.values():
            for job in jobs.values():
                job.stop.set()
        for thread in (*self.threads.values(), self.packer):
            thread.shutdown(wait=True, cancel_futures=True)
        for jobs in self.jobs.values():
            for job in jobs.values():
                job.answer.cancel()
