"""Runs a command line in several processes at once, as torchrun does, but from one start of Python."""

import os
import socket
import subprocess
import sys

SCRIPT = """
import os, sys
import gammacaps.evaluation.run, gammacaps.training.loop
from gammacaps.cli import main

count, rank, children = int(sys.argv[1]), 0, []
for other in range(1, count):
    if not (child := os.fork()):
        rank, children = other, []
        break
    children.append(child)
told = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
os.environ.update({name: str(value) for name, value in told.items()})
status = 0
try:
    main(sys.argv[2:])
except SystemExit as end:
    status = end.code or 0
for child in children:
    status = max(status, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdout.flush()
os._exit(status)
"""


def together(count: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`gammacaps ARGUMENTS` in so many processes; its status is the largest of theirs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    told |= {"TORCHELASTIC_RUN_ID": f"test {port}", "TORCHELASTIC_RESTART_COUNT": "0"}
    command = [sys.executable, "-c", SCRIPT, str(count), *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=False, timeout=300)
