"""The explorer under a crowd, on this machine alone: idle and slow sockets, garbage, and many who ask and may leave."""

import asyncio
import base64
import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from benchmarks.faults.judge import Ran, Tried, ended_badly
from benchmarks.faults.stage import RUN, Stage

IDLE, SLOW, GARBAGE, CLIENTS, SECONDS = 300, 50, 50, 200, 5.0
PIXELS = 28 * 28
ANSWER_S, HEADERS_S, SETTLE_S, END_S = 2.0, 15.0, 1.0, 15.0  # limits: an answer, headers that come slowly, an end
MEMORY_MIB = 128  # that a crowd may leave behind
T = TypeVar("T")


@dataclass
class CrowdOutcome:
    """What happened to the crowd."""

    statuses: dict[int, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


def crowd(stage: Stage, chance: Random) -> Tried:
    command = [sys.executable, "-m", "gammacaps", "explore", RUN, "--port", "0", "--no-browser"]
    # Into a file: a server that says much must not wait for us to read it.
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            cwd=stage.whole,
            env=stage.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as server,
    ):
        try:
            assert server.stdout is not None
            address = re.search(rb"http://127\.0\.0\.1:(\d+)/", server.stdout.readline())
            if address is None:
                return Tried("the explorer", ("it did not start",))
            try:
                seen = asyncio.run(visit(int(address[1]), server.pid, chance))
            except OSError as error:
                seen = CrowdOutcome(lost=[f"it could no longer be reached ({error})"])
            server.send_signal(signal.SIGTERM)
            status = _end(server)
            errors.seek(0)
            ran = Ran("explore", status, errors.read().decode(errors="replace"), signal.SIGTERM)
        finally:
            server.kill()
    answers = ", ".join(f"{count} x {status}" for status, count in sorted(seen.statuses.items()))
    return Tried(f"the explorer, answers {answers}", (*seen.lost, *ended_badly(ran)))


def _end(server: "subprocess.Popen[bytes]") -> int | None:
    try:
        return server.wait(END_S)
    except subprocess.TimeoutExpired:
        return None


async def visit(port: int, pid: int, chance: Random) -> CrowdOutcome:
    """The crowd comes and goes; then one ordinary visitor."""
    seen = CrowdOutcome()
    await ask(port, chance)
    before, start = memory(pid), time.monotonic()
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(IDLE)]
    slow = [asyncio.create_task(dribble(port)) for _ in range(SLOW)]
    work: list[Awaitable[None]] = [send_garbage(port, chance) for _ in range(GARBAGE)]
    work += [keep_asking(port, chance, seen, start + SECONDS, leaves=place % 5 == 0) for place in range(CLIENTS)]
    await asyncio.gather(*work)
    await asyncio.sleep(SETTLE_S)
    asked = time.monotonic()
    status = await within(lambda: ask(port, chance), 10 * ANSWER_S)
    took = time.monotonic() - asked
    if status != 200 or took > ANSWER_S:
        seen.lost.append(f"an ordinary question got {status or 'no answer'} after {took:.1f} s")
    _, late = await asyncio.wait(slow, timeout=max(0.0, start + HEADERS_S - time.monotonic()))
    for task in late:
        task.cancel()
    if late:
        seen.lost.append(f"{len(late)} of {SLOW} sockets with slow headers were open after {HEADERS_S:g} s")
    for _, writer in idle:
        writer.close()
    await asyncio.sleep(SETTLE_S)
    if memory(pid) > before + MEMORY_MIB:
        seen.lost.append(f"memory went from {before:.0f} to {memory(pid):.0f} MiB")
    return seen


async def ask(port: int, chance: Random, *, leaves: bool = False) -> int | None:
    """A tree of an image of noise: the answer's status. One who leaves does not wait for it."""
    pixels = base64.b64encode(chance.randbytes(PIXELS)).decode()
    body = json.dumps({"image": {"pixels": pixels}}).encode()
    head = f"POST /api/parse HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        if leaves:
            await asyncio.sleep(chance.random() / 2)
            return None
        answer = await reader.read()
        return int(answer.split(maxsplit=2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
    finally:
        writer.close()


async def keep_asking(port: int, chance: Random, seen: CrowdOutcome, end: float, *, leaves: bool) -> None:
    while time.monotonic() < end:
        status: int | None = 0
        with contextlib.suppress(OSError):
            status = await within(lambda: ask(port, chance, leaves=leaves), 60)
        if leaves:
            continue
        status = status or 0
        seen.statuses[status] = seen.statuses.get(status, 0) + 1
        if status not in (200, 503):
            seen.lost.append(f"a client got {status or 'no answer'}")
        if status != 200:
            await asyncio.sleep(0.2)


async def dribble(port: int) -> None:
    """A header that comes one byte at a time, until the server has enough of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        while not reader.at_eof():
            writer.write(b"x")
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1000), 0.5)
    except OSError:
        pass  # closed from the other side
    finally:
        writer.close()


async def send_garbage(port: int, chance: Random) -> None:
    """What is not a question, in one of several ways; whatever comes back will do."""
    head = b"POST /api/parse HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    forms = (
        chance.randbytes(200),
        b"GET " + b"/" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"BREW / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: elsewhere.example\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n",
        head + b"content-length: -5\r\n\r\n{}",
        head + b"content-length: 99999999999\r\n\r\n{}",
        head + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        head + b'content-length: 9\r\n\r\n{"image":',
        head + b"content-length: 40000\r\n\r\n" + b"[" * 40_000,
    )
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(chance.choice(forms))
        await within(lambda: reader.read(1000), 1)
        writer.close()


async def within(work: Callable[[], Awaitable[T]], seconds: float) -> T | None:
    try:
        return await asyncio.wait_for(work(), seconds)
    except TimeoutError:
        return None


def memory(pid: int) -> float:
    """MiB in use by a process of Linux; none once it has ended."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024
    return 0.0
