"""The lanes: one answer for all who ask alike, what nobody wants is stopped, what is too much is refused."""

import asyncio
import threading
import time

import pytest

from gammacaps.explorer import work
from gammacaps.explorer.work import Busy, Stopped, Work


def run(test):
    """Runs a test in an event loop, with a Work that is closed at its end."""

    async def whole():
        mine = Work()
        try:
            await asyncio.wait_for(test(mine), 20)
        finally:
            mine.close()

    asyncio.run(whole())


def test_who_asks_alike_shares_one_answer_that_is_kept():
    calls = []

    async def test(mine):
        gate = threading.Event()

        def call(tick):
            calls.append(1)
            gate.wait(5)
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
        holder = mine.job("slow", "a", lambda tick: b"x" if gate.wait(5) else b"")
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
        slow = mine.job("slow", "a", lambda tick: b"late" if gate.wait(5) else b"")
        assert await mine.job("quick", "b", lambda tick: b"soon").answer == b"soon"
        assert not slow.answer.done()
        gate.set()
        assert await slow.answer == b"late"

    run(test)


def test_a_full_lane_refuses(monkeypatch):
    monkeypatch.setitem(work.WAITING, "quick", 3)

    async def test(mine):
        gate = threading.Event()
        jobs = [mine.job("quick", str(k), lambda tick: b"x" if gate.wait(5) else b"") for k in range(3)]
        with pytest.raises(Busy):
            mine.job("quick", "one too many", lambda tick: b"")
        gate.set()
        await asyncio.gather(*(job.answer for job in jobs))
        assert mine.jobs["quick"] == {}

    run(test)


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
    monkeypatch.setattr(work, "KEPT", 100)

    async def test(mine):
        for k in range(5):
            await mine.job("quick", str(k), lambda tick: bytes(30)).answer
        await asyncio.sleep(0)
        assert list(mine.kept) == ["2", "3", "4"]
        mine.find("2")
        await mine.job("quick", "5", lambda tick: bytes(30)).answer
        await asyncio.sleep(0)
        assert list(mine.kept) == ["4", "2", "5"]
        assert mine.size == 90

    run(test)
