"""How the explorer bears a crowd: 200 trees at once, then 20 attacks, in rounds; its memory at work and at rest.

    python -m benchmarks.explorer RUN

All images are noise and all differ, so that no answer is one that was kept.
"""

import base64
import json
import random
import re
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROUNDS, PARSES, ATTACKS, ALONE, IDLE = 4, 200, 20, 30, 5


def main() -> None:
    command = [sys.executable, "-m", "gammacaps", "explore", sys.argv[1], "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+/", server.stdout.readline())
            if address is None:
                sys.exit("The explorer did not start.")
            measure(address[0], server.pid)
        finally:
            server.terminate()


def measure(address: str, pid: int) -> None:
    with urllib.request.urlopen(f"{address}api/model") as answer:
        channels, height, width = json.load(answer)["networks"][0]["image_shape"]
    noise = random.Random(0)

    def ask(path: str) -> tuple[int, float]:
        """Status and seconds of one question."""
        pixels = base64.b64encode(noise.randbytes(channels * height * width)).decode()
        body: dict[str, Any] = {"image": {"pixels": pixels}}
        question = urllib.request.Request(address + path, json.dumps(body).encode())
        question.add_header("content-type", "application/json")
        start = time.perf_counter()
        try:
            with urllib.request.urlopen(question, timeout=600) as answer:
                answer.read()
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        return status, time.perf_counter() - start

    print(f"memory at the start: {memory(pid):.0f} MiB")
    for path in ("api/parse", "api/attack"):
        ask(path)
        print(f"memory after the first {path}: {memory(pid):.0f} MiB")
    alone = [1000 * ask("api/parse")[1] for _ in range(ALONE + 5)][5:]
    print(f"one tree alone: median {statistics.median(alone):.0f} ms, slowest of {ALONE} {max(alone):.0f} ms")
    print(f"memory: {memory(pid):.0f} MiB; {IDLE} s later {idle(pid):.0f} MiB")
    for turn in range(1, ROUNDS + 1):
        for path, count in (("api/parse", PARSES), ("api/attack", ATTACKS)):
            start = time.perf_counter()
            with ThreadPoolExecutor(count) as pool:
                answers = list(pool.map(ask, [path] * count))
            statuses = dict(Counter(status for status, _ in answers))
            took = time.perf_counter() - start
            print(f"round {turn}, {count} x {path}: {statuses}, {took:.1f} s; memory {memory(pid):.0f} MiB", flush=True)
        print(f"{IDLE} s later: memory {idle(pid):.0f} MiB", flush=True)


def idle(pid: int) -> float:
    """MiB in use once nobody has asked anything for a while."""
    time.sleep(IDLE)
    return memory(pid)


def memory(pid: int) -> float:
    """MiB in use by a process of Linux."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
