"""How long a parse takes the explorer while many ask at once: `python -m benchmarks.explorer_load --clients 200`.

Each client keeps one connection and sends its next question once the last one is answered; after a 503 it waits as long
as it is told. All images are noise and all differ, so that no answer is one that was kept. The server is a process of
its own, at a free port of this machine alone.
"""

import argparse
import asyncio
import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

MOST_CLIENTS, MOST_SECONDS = 800, 300
PATIENCE = 60  # seconds for one answer
WARM = 5  # parses before anything is timed


@dataclass
class Load:
    """What became of all questions of one crowd."""

    clients: int
    took: list[float] = field(default_factory=list)  # seconds of each that was answered
    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0  # connections that broke
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of CPU that the server took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="?", default="fashion-mini", help="a run's folder or a shipped name")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 50, 200], help="at once, one row each")
    parser.add_argument("--seconds", type=float, default=20, help="for each row")
    asked = parser.parse_args()
    if not all(0 < count <= MOST_CLIENTS for count in asked.clients) or not 0 < asked.seconds <= MOST_SECONDS:
        parser.error(f"from 1 to {MOST_CLIENTS} clients, for at most {MOST_SECONDS} seconds")
    # In a folder of its own, since a shipped network is copied to where the server runs.
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gammacaps", "explore", asked.network, "--port", "0", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
            try:
                report(address_of(server), server.pid, asked.clients, asked.seconds)
            finally:
                server.terminate()


def address_of(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.split():
            if word.startswith("http://"):
                return word
    sys.exit("The explorer did not start.")


def report(address: str, pid: int, counts: list[int], seconds: float) -> None:
    with urllib.request.urlopen(f"{address}api/model", timeout=PATIENCE) as answer:
        channels, height, width = json.load(answer)["networks"][0]["image_shape"]
    port, size = urlsplit(address).port, channels * height * width
    assert port is not None
    asyncio.run(crowd(port, size, Load(1), 600, WARM))
    print("| clients | answered | a second | CPU ms each | median s | p95 s | slowest s | refused | lost |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in counts:
        load, before = Load(count), cpu_seconds(pid)
        asyncio.run(crowd(port, size, load, seconds))
        load.cpu = cpu_seconds(pid) - before
        print(row(load), flush=True)


def row(load: Load) -> str:
    took = sorted(load.took)
    figures = ["-"] * 3
    if took:
        figures = [f"{each:.3f}" for each in (statistics.median(took), took[int(0.95 * (len(took) - 1))], took[-1])]
    others = sum(count for status, count in load.statuses.items() if status not in (200, 503))
    refused = f"{load.statuses[503]}" + (f", {others} other errors" if others else "")
    rate = f"{len(took) / load.seconds:.1f} | {1000 * load.cpu / max(1, len(took)):.1f}"
    return f"| {load.clients} | {len(took)} | {rate} | {' | '.join(figures)} | {refused} | {load.lost} |"


def cpu_seconds(pid: int) -> float:
    """Of a process of Linux so far: what other work on the machine changes least."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def crowd(port: int, size: int, load: Load, seconds: float, most: int = 10**9) -> None:
    """All clients until the time is over, each for at most so many questions; what is under way is waited for."""
    start = time.perf_counter()
    ends = start + seconds
    await asyncio.gather(*(client(port, size, load, ends, most, seed) for seed in range(load.clients)))
    load.seconds = time.perf_counter() - start


async def client(port: int, size: int, load: Load, ends: float, most: int, seed: int) -> None:
    noise = random.Random(f"{load.clients} {seed}")
    writer: asyncio.StreamWriter | None = None
    try:
        while time.perf_counter() < ends and most > 0:
            most -= 1
            try:
                async with asyncio.timeout(PATIENCE):
                    if writer is None:
                        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
                    start = time.perf_counter()
                    writer.write(question(noise.randbytes(size)))
                    status, headers = await answer_of(reader)
            except (OSError, EOFError, TimeoutError):
                load.lost += 1
                if writer is not None:
                    writer.close()
                writer = None
                await asyncio.sleep(0.1)
                continue
            load.statuses[status] += 1
            if status == 200:
                load.took.append(time.perf_counter() - start)
            if headers.get("connection") == "close":
                writer.close()
                writer = None
            if status == 503:
                await asyncio.sleep(float(headers.get("retry-after", "1")))
    finally:
        if writer is not None:
            writer.close()


def question(pixels: bytes) -> bytes:
    body = json.dumps({"image": {"pixels": base64.b64encode(pixels).decode()}}).encode()
    head = "POST /api/parse HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer, read to its end."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    left = int(headers["content-length"])
    while left > 0:  # by parts, since what is in them is nobody's concern here
        part = len(await reader.read(left))
        if part == 0:
            raise EOFError
        left -= part
    return int(head[0].split()[1]), headers


if __name__ == "__main__":
    main()
