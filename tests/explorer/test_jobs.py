"""The lanes: one answer for all who ask alike, what nobody wants is stopped, what is too much is refused."""

import asyncio
import os
import subprocess
import sys
import threading
import time
import zlib

import pytest

from gammacaps.explorer.jobs import kept, lanes, queue
from gammacaps.explorer.jobs.job import Stopped
from gammacaps.explorer.jobs.lanes import Busy, Lanes


def run(test):
    """Runs a test in an event loop, with lanes that are closed at its end."""

    async def whole():
        mine = Lanes()
        try:
            await asyncio.wait_for(test(mine), 60)
        finally:
            mine.close()

    asyncio.run(whole())


def test_who_asks_alike_shares_one_answer_that_is_kept():
    calls = []

    async def test(mine):
        gate = threading.Event()

        def call(tick):
            calls.append(1)
            gate.wait(60)
            return b"answer"

        first, second = mine.job("quick", "key", call), mine.job("quick", "key", call)
        assert first is second
        gate.set()
        assert await first.answer == b"answer"
        assert mine.find("key") == b"answer"
        assert mine.find("other") is None

    run(test)
    assert len(calls) == 1


def test_work_stops_once_everybody_has_left_and_can_be_asked_for_again():
    ends = []

    async def test(mine):
        def long(tick):
            try:
                for k in range(10**6):
                    time.sleep(0.002)
                    tick(k, 10**6)
            except Stopped:
                ends.append("stopped")
                raise
            return b"never"

        first, again = mine.job("slow", "key", long), mine.job("slow", "key", long)
        while first.progress is None:
            await asyncio.sleep(0.01)
        first.leave()
        await asyncio.sleep(0.05)
        assert not first.answer.done()  # one still waits
        again.leave()
        fresh = mine.job("slow", "key", lambda tick: b"now")
        assert fresh is not first
        assert await fresh.answer == b"now"
        assert first.answer.cancelled()

    run(test)
    assert ends == ["stopped"]


def test_what_waits_and_is_left_is_never_begun():
    async def test(mine):
        gate, begun = threading.Event(), []
        holder = mine.job("slow", "a", lambda tick: b"x" if gate.wait(60) else b"")
        waiting = mine.job("slow", "b", lambda tick: begun.append(1) or b"")
        waiting.leave()
        gate.set()
        await holder.answer
        with pytest.raises(asyncio.CancelledError):
            await waiting.answer
        assert begun == []

    run(test)


def test_a_slow_job_does_not_hold_up_a_quick_one():
    async def test(mine):
        gate = threading.Event()
        slow = mine.job("slow", "a", lambda tick: b"late" if gate.wait(60) else b"")
        assert await mine.job("quick", "b", lambda tick: b"soon").answer == b"soon"
        assert not slow.answer.done()
        gate.set()
        assert await slow.answer == b"late"

    run(test)


def test_a_full_lane_refuses(monkeypatch):
    monkeypatch.setitem(lanes.WAITING, "quick", 3)

    async def test(mine):
        gate = threading.Event()
        jobs = [mine.job("quick", str(k), lambda tick: b"x" if gate.wait(60) else b"") for k in range(3)]
        with pytest.raises(Busy):
            mine.job("quick", "one too many", lambda tick: b"")
        gate.set()
        await asyncio.gather(*(job.answer for job in jobs))
        assert mine.jobs["quick"] == {}

    run(test)


def shared(mine, passes, names, group="group"):
    """Jobs whose questions are their names; each pass is noted, and a bad name breaks its pass or its own answer."""

    def calls(asked):
        passes.append(list(asked))
        if "bad pass" in asked:
            raise ValueError("bad pass")
        return [lambda tick, name=name: name.encode() if name != "bad" else 1 / 0 for name in asked]

    return [mine.share("quick", name, group, name, calls) for name in names]


@pytest.fixture
def patient(monkeypatch):
    """To be held looks slow, which is no reason to share less here."""
    monkeypatch.setattr(queue, "PASS", 1000)


def hold(mine):
    """A gate, before which the quick lane's thread waits."""
    gate, begun = threading.Event(), threading.Event()
    mine.job("quick", "gate", lambda tick: begun.set() or (b"x" if gate.wait(10) else b""))
    assert begun.wait(10)
    return gate


@pytest.mark.usefixtures("patient")
def test_what_waits_together_shares_a_pass_and_each_gets_its_own_answer():
    passes = []

    async def test(mine):
        gate = hold(mine)
        jobs = shared(mine, passes, ["a", "b"]) + shared(mine, passes, ["other"], "another") + shared(mine, passes, "c")
        gate.set()
        assert [await job.answer for job in jobs] == [b"a", b"b", b"other", b"c"]
        assert mine.find("b") == b"b"

    run(test)
    assert passes == [["a", "b", "c"], ["other"]]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("bad", ["bad", "bad pass"])
def test_an_error_in_one_question_does_not_break_the_others_of_its_pass(bad):
    passes = []

    async def test(mine):
        gate = hold(mine)
        first, broken, last = shared(mine, passes, ["a", bad, "c"])
        gate.set()
        assert (await first.answer, await last.answer) == (b"a", b"c")
        with pytest.raises((ZeroDivisionError, ValueError)):
            await broken.answer
        assert mine.jobs["quick"] == {}

    run(test)
    assert passes == [["a", bad, "c"]] + ([["a"], [bad], ["c"]] if bad == "bad pass" else [])


@pytest.mark.usefixtures("patient")
def test_a_question_that_is_left_while_it_waits_is_not_in_the_pass():
    passes = []

    async def test(mine):
        gate = hold(mine)
        first, left, last = shared(mine, passes, "abc")
        left.leave()
        gate.set()
        assert (await first.answer, await last.answer) == (b"a", b"c")
        assert left.answer.cancelled()

    run(test)
    assert passes == [["a", "c"]]


def test_closing_while_a_pass_waits_cancels_it():
    passes = []

    async def test(mine):
        gate = hold(mine)
        jobs = shared(mine, passes, "abc")
        asyncio.get_running_loop().run_in_executor(None, lambda: (time.sleep(0.1), gate.set()))
        mine.close()
        assert all(job.answer.cancelled() for job in jobs)
        await asyncio.sleep(0.05)  # what was done meanwhile finds nobody

    run(test)
    assert passes == []


def test_what_would_wait_too_long_is_refused_and_told_when_to_come_back():
    passes = []

    async def test(mine):
        mine.queues["quick"].took.extend([3.0] * 4)  # seconds an answer
        gate = hold(mine)
        jobs = shared(mine, passes, "abc")  # which makes 12 s
        with pytest.raises(Busy) as refused:
            shared(mine, passes, "d")
        assert refused.value.seconds == 2
        jobs[-1].leave()
        shared(mine, passes, "e")
        gate.set()
        await jobs[0].answer

    run(test)
    assert passes[0] == ["a"]  # so slow that nobody should wait for another


def test_an_error_is_told_to_all_and_not_kept():
    async def test(mine):
        def broken(tick):
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await mine.job("quick", "key", broken).answer
        assert mine.find("key") is None
        assert await mine.job("quick", "key", lambda tick: b"whole").answer == b"whole"

    run(test)


def test_what_is_kept_has_a_limit_and_the_oldest_goes(monkeypatch):
    answer = os.urandom(1000)  # which can't be packed
    size = len(zlib.compress(answer, 1))
    monkeypatch.setattr(kept, "KEPT", 3 * size)

    async def test(mine):
        for k in range(5):
            await mine.job("quick", str(k), lambda tick: answer).answer
        await asyncio.sleep(0)
        assert list(mine.kept.packed) == ["2", "3", "4"]
        mine.find("2")
        await mine.job("quick", "5", lambda tick: answer).answer
        await asyncio.sleep(0)
        assert list(mine.kept.packed) == ["4", "2", "5"]
        assert mine.kept.size == 3 * size
        assert mine.find("5") == answer

    run(test)


def test_kept_answers_are_packed():
    drawing = b"".join(b'<circle cx="%d" cy="%d" r="3"/>' % (k, 7 * k) for k in range(1000))

    async def test(mine):
        await mine.job("quick", "key", lambda tick: drawing).answer
        await asyncio.sleep(0)
        assert mine.find("key") == drawing
        assert mine.kept.size == len(mine.kept.packed["key"]) < len(drawing) / 3

    run(test)


def test_memory_goes_back_once_there_is_nothing_to_do_and_no_sooner(monkeypatch):
    rests = []
    monkeypatch.setattr(lanes, "give_back", lambda: rests.append(1))

    async def test(mine):
        gate = threading.Event()
        await mine.job("quick", "a", lambda tick: b"").answer
        planned = mine.rest
        assert planned is not None
        assert not planned.cancelled()
        slow = mine.job("slow", "b", lambda tick: b"late" if gate.wait(60) else b"")
        assert planned.cancelled()
        await mine.job("quick", "c", lambda tick: b"").answer
        assert mine.rest is planned  # one is still at work
        monkeypatch.setattr(lanes, "REST", 0)
        gate.set()
        await slow.answer
        while not rests:
            await asyncio.sleep(0.01)

    run(test)
    assert rests == [1]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux does")
def test_memory_that_the_allocator_keeps_goes_back_to_the_system():
    """As after a crowd: all but the last answer are gone, with the allocator set as the command line sets it."""
    program = """
from pathlib import Path
from gammacaps.memory import give_back, reuse_memory
resident = lambda: int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024
reuse_memory()
before = resident()
answers = [bytes([k % 256]) * 300_000 for k in range(200)]
del answers[:-1]
after = resident()
give_back()
print(before, after, resident())
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    before, after, at_rest = map(int, said.split())  # MiB
    assert after - before > 40  # else nothing had to be given back
    assert at_rest - before < 10
