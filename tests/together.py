"""Runs a command line in several processes at once, as torchrun does, but from one start of Python."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SCRIPT = """
import os, sys
import gammacaps.evaluation.run, gammacaps.training.train
from gammacaps.cli import main

count, rank, children = int(sys.argv[1]), 0, []
for other in range(1, count):
    if not (child := os.fork()):
        rank, children = other, []
        break
    children.append(child)
told = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count}
os.environ.update({name: str(value) for name, value in told.items()})
if "APART" in os.environ:
    os.chdir(os.path.join(os.environ["APART"], str(rank)))
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


@contextlib.contextmanager
def started(count: int, *arguments: object, apart: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """`gammacaps ARGUMENTS` in so many processes, of which this is the first; its status is the largest of theirs.

    With `apart` each works in a folder of its own in that one, 0 and 1 and so on, as processes on several machines do.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    told |= {"TORCHELASTIC_RUN_ID": f"test {port}"} | ({"APART": str(apart)} if apart else {})
    command = [sys.executable, "-c", SCRIPT, str(count), *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, **told}, start_new_session=True, **pipes) as first:
        try:
            yield first
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(first.pid, signal.SIGKILL)  # whoever has not ended, be it that they wait for one another


def together(count: int, *arguments: object, apart: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What has become of them at their end."""
    with started(count, *arguments, apart=apart) as first:
        out, err = first.communicate(timeout=300)
    return subprocess.CompletedProcess(first.args, first.returncode, out, err)
