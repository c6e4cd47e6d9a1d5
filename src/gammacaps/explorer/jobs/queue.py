"""What waits in one lane, and how its threads answer it: here, or by a helper in another process."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, Protocol, runtime_checkable

from gammacaps.explorer.jobs.job import Calls, Job, Stopped, Tick

TOGETHER = 16  # questions that share a pass, at most
PASS = 1.0  # seconds that the answers from one pass should take: the last of them waits for the first
PACE = 64  # answers by which a lane's pace is known
log = logging.getLogger(__name__)


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
