"""Work off the page's thread: two lanes, so that what is slow never holds up what is quick; answers kept by content.

Whoever asks for what is being worked out already waits for that; what nobody waits for any more is stopped.
Questions of one group that wait together are answered from one pass of the network. More than can be answered in time
is refused.
Once nothing has been asked for a while, the memory that work needed goes back to the system.
"""

import asyncio
import contextlib
import ctypes
import gc
import itertools
import logging
import math
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from typing import Any, Literal, Protocol, runtime_checkable

Lane = Literal["quick", "slow"]
Tick = Callable[[int, int], None]  # passes done and passes in all; raises where nobody waits any more
Call = Callable[[Tick], bytes]
Calls = Callable[[Sequence[Any]], Sequence[Call]]  # of questions that share a pass: makes it, and gives a call for each

WAITING: dict[Lane, int] = {"quick": 1024, "slow": 32}  # jobs in a lane, at most
PATIENCE: dict[Lane, float] = {"quick": 10.0, "slow": math.inf}  # seconds to wait in a lane, as far as can be foreseen
TOGETHER = 16  # questions that share a pass, at most
PASS = 1.0  # seconds that the answers from one pass should take: the last of them waits for the first
PACE = 64  # answers by which a lane's pace is known
KEPT = 4 * 2**20  # bytes of answers, packed to about a ninth
REST = 2.0  # seconds without work, after which memory is given back
log = logging.getLogger(__name__)


class Busy(Exception):
    """The lane is full: come back after so many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Stopped(Exception):
    """Nobody waits for this answer any more."""


class Job:
    """One answer in the making, for all who want it; each of them must leave."""

    def __init__(self, key: str, name: str, group: Hashable, question: Any, calls: Calls) -> None:
        self.key, self.name = key, name  # of its answer, and its own among the lane's jobs
        self.group, self.question, self.calls = group, question, calls
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.progress: tuple[int, int] | None = None
        self.wanted = 1
        self.stop = threading.Event()

    def leave(self) -> None:
        self.wanted -= 1
        if self.wanted == 0:
            self.stop.set()

    def tick(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopped
        self.progress = (done, total) if total else None


@runtime_checkable
class Helps(Protocol):
    """Answers questions of the quick lane in another process."""

    def answer(self, asked: Sequence[Any]) -> Sequence[bytes | Exception]: ...

    def rest(self) -> None: ...


class Queue:
    """What waits in a lane, for its threads to take, and how long an answer took lately."""

    def __init__(self, helper: Helps | None = None) -> None:
        self.helper = helper
        self.here = threading.Lock()  # whoever has it answers in this process; another thread by the helper
        self.waiting: deque[Job] = deque()
        self.lock = threading.Lock()
        self.took: deque[float] = deque(maxlen=PACE)  # seconds

    @property
    def pace(self) -> float:
        """Seconds an answer takes; 0 where nothing is known."""
        took = list(self.took)
        return sum(took) / len(took) if took else 0.0

    @property
    def threads(self) -> int:
        return 1 if self.helper is None else 2

    def put(self, job: Job) -> None:
        with self.lock:
            self.waiting.append(job)

    def take(self) -> list[Job]:
        """The job that waited longest, with others of its group; none where all have been taken."""
        most = TOGETHER if self.pace == 0 else max(1, min(TOGETHER, int(PASS / self.pace)))
        taken: list[Job] = []
        left: deque[Job] = deque()
        with self.lock:
            for job in self.waiting:
                first = taken[0] if taken else job
                fits = first is job or (job.group is not None and job.group == first.group)
                (taken if fits and len(taken) < most else left).append(job)
            self.waiting = left
        return taken


class Work:
    """Both lanes, each with a thread of its own, and the answers kept. Lives in one event loop.

    A helper serves the quick lane too, whenever that has more to do than one thread can take.
    """

    def __init__(self, helper: Helps | None = None) -> None:
        self.queues: dict[Lane, Queue] = {"quick": Queue(helper), "slow": Queue()}
        self.lanes = {
            lane: ThreadPoolExecutor(queue.threads, thread_name_prefix=f"gammacaps-{lane}")
            for lane, queue in self.queues.items()
        }
        self.packer = ThreadPoolExecutor(1, thread_name_prefix="gammacaps-pack")
        self.jobs: dict[Lane, dict[str, Job]] = {lane: {} for lane in WAITING}
        self.kept: OrderedDict[str, bytes] = OrderedDict()  # packed
        self.size = 0
        self.numbers = itertools.count()
        self.rest: asyncio.TimerHandle | None = None

    def find(self, key: str) -> bytes | None:
        """A kept answer."""
        if key not in self.kept:
            return None
        self.kept.move_to_end(key)
        return zlib.decompress(self.kept[key])

    def job(self, lane: Lane, key: str, call: Call) -> Job:
        """The job for a key, begun if there is none. Whoever calls this waits for it, and must leave it."""
        return self.share(lane, key, None, None, lambda _: [call])

    def share(self, lane: Lane, key: str, group: Hashable, question: Any, calls: Calls) -> Job:
        """As `job`, for a question that may share a pass with others of its group that wait at the same time."""
        jobs, queue = self.jobs[lane], self.queues[lane]
        found = jobs.get(key)
        if found is not None and not found.stop.is_set():
            found.wanted += 1
            return found
        # What was left is passed over in no time.
        seconds = queue.pace / queue.threads * sum(not job.stop.is_set() for job in jobs.values())
        if len(jobs) >= WAITING[lane] or seconds > PATIENCE[lane]:
            raise Busy(math.ceil(max(1.0, seconds - PATIENCE[lane])))
        self._stay_awake()
        # One that was stopped may still stand under this key until its thread has noticed.
        name = key if found is None else f"{key} {next(self.numbers)}"
        made = jobs[name] = Job(key, name, group, question, calls)
        queue.put(made)
        loop = asyncio.get_running_loop()

        def finish(job: Job, result: bytes | Exception) -> None:
            packed = zlib.compress(result, 1) if isinstance(result, bytes) else b""
            with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody has gone
                loop.call_soon_threadsafe(self._finish, lane, job, result, packed)

        # In a thread of its own, since packing needs none of what the lane's thread has to wait for.
        self.lanes[lane].submit(serve, queue, lambda *done: self.packer.submit(finish, *done))
        return made

    def _finish(self, lane: Lane, job: Job, result: bytes | Exception, packed: bytes) -> None:
        self.jobs[lane].pop(job.name, None)
        if not any(self.jobs.values()):
            self._stay_awake()
            self.rest = asyncio.get_running_loop().call_later(REST, self._rest)
        if isinstance(result, bytes):
            self._keep(job.key, packed)
        if job.answer.done():
            return
        if isinstance(result, bytes):
            job.answer.set_result(result)
        elif isinstance(result, Stopped):
            job.answer.cancel()
        else:
            job.answer.set_exception(result)
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
        if (helper := self.queues["quick"].helper) is not None:
            helper.rest()

    def close(self) -> None:
        """Stops all work; what was waiting is cancelled."""
        self._stay_awake()
        for jobs in self.jobs.values():
            for job in jobs.values():
                job.stop.set()
        for thread in (*self.lanes.values(), self.packer):
            thread.shutdown(wait=True, cancel_futures=True)
        for jobs in self.jobs.values():
            for job in jobs.values():
                job.answer.cancel()


Finish = Callable[[Job, bytes | Exception], object]


def serve(queue: Queue, finish: Finish) -> None:
    """One turn of a lane's thread: there is one for each job, but an earlier turn may have taken several."""
    jobs = []
    for job in queue.take():
        if job.stop.is_set():
            finish(job, Stopped())
        else:
            jobs.append(job)
    if not jobs:
        return
    start = time.monotonic()
    helper = queue.helper
    if queue.here.acquire(blocking=helper is None):
        try:
            answer_here(jobs, finish)
        finally:
            queue.here.release()
    else:
        assert helper is not None
        answer_elsewhere(jobs, finish, queue, helper)
    queue.took.extend([(time.monotonic() - start) / len(jobs)] * len(jobs))


def answer_here(jobs: Sequence[Job], finish: Finish) -> None:
    """Answers jobs of one group from one pass, each as soon as it is ready."""
    results = answer_each(jobs[0].calls, [job.question for job in jobs], [job.tick for job in jobs])
    for job, result in zip(jobs, results, strict=True):
        finish(job, result)


def answer_elsewhere(jobs: Sequence[Job], finish: Finish, queue: Queue, helper: Helps) -> None:
    """The same by the helper, or here if it has died, as from then on all will be."""
    try:
        results = helper.answer([job.question for job in jobs])
    except (BrokenExecutor, RuntimeError):  # the latter where it is closed
        queue.helper = None
        log.warning("The second process that draws trees has ended: this one goes on alone.")
        answer_here(jobs, finish)
        return
    for job, result in zip(jobs, results, strict=True):
        finish(job, result)


def answer_each(
    calls: Calls, questions: Sequence[Any], ticks: Sequence[Tick] | None = None
) -> Iterator[bytes | Exception]:
    """The answers to questions that share a pass, or what went wrong with each."""
    ticks = ticks or [lambda done, total: None] * len(questions)
    try:
        made = calls(questions)
    except Exception as error:
        if len(questions) == 1:
            yield error
            return
        for question, tick in zip(questions, ticks, strict=True):  # one of them is at fault, and the others are not
            yield from answer_each(calls, [question], [tick])
        return
    for call, tick in zip(made, ticks, strict=True):
        try:
            tick(0, 0)
            result: bytes | Exception = call(tick)
        except Exception as error:
            result = error
        yield result


def give_back() -> None:
    """Gives unused memory back to the system: by itself the allocator keeps what a crowd of questions once needed."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU/Linux has this
        ctypes.CDLL("libc.so.6").malloc_trim(0)
