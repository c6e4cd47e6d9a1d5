"""`gammacaps explore` as a user starts it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from serving import request

from gammacaps.cli import main
from gammacaps.errors import InputError
from gammacaps.explorer.run import PORT, address_of, has_screen, listen


@pytest.mark.slow
def test_it_serves_what_it_says_and_ends_on_ctrl_c(runs):
    command = [sys.executable, "-m", "gammacaps", "explore", *map(str, runs), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        address = re.fullmatch(r"Exploring sda and rba at (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", said)[1]
        with urllib.request.urlopen(f"{address}api/model", timeout=60) as answer:
            assert len(json.load(answer)["networks"]) == 2
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "The explorer has ended.\n")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="there is no second process")
def test_a_second_process_answers_in_a_crowd_and_its_end_is_nobody_s_loss(runs, networks):
    command = [sys.executable, "-m", "gammacaps", "explore", str(runs[0]), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def crowd(tau):
        bodies = [{"image": {"sample": k}, "tau": tau} for k in range(60)]
        with ThreadPoolExecutor(60) as pool:
            return list(pool.map(lambda body: request(port, "POST", "/api/parse", body), bodies))

    try:
        port = int(re.search(r":(\d+)/ ", process.stdout.readline())[1])
        (helper,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        before = ticks(helper)
        found = crowd(0.1)
        assert {status for status, _, _ in found} == {200}
        with torch.no_grad():
            scores = networks[0].model(networks[0].images[:60])
        for expected, (_, _, content) in zip(scores.tolist(), found, strict=True):
            assert json.loads(content)["scores"] == pytest.approx(expected, abs=2e-4)
        assert ticks(helper) > before
        os.kill(helper, signal.SIGKILL)
        assert {status for status, _, _ in crowd(0.2)} == {200}
        assert {status for status, _, _ in crowd(0.3)} == {200}
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert errors.endswith("The explorer has ended.\n")
        assert "this one goes on alone" in errors
    finally:
        process.kill()
        process.communicate()


def ticks(pid):
    """Of CPU that a process took."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere"),
        (["RUN", "--port", "70000"], "port must be at most 65,535, not 70000"),
        (["RUN", "--host", "no.such.host.invalid"], "There is no address 'no.such.host.invalid'"),
        (["RUN", "--host", "192.0.2.1"], "There is no address '192.0.2.1' on this machine"),
        (["RUN", "RUN"], "are the same network"),
        (["RUN", "--device", "tpu"], "no device 'tpu'"),
    ],
)
def test_what_a_user_did_wrong_is_one_sentence(runs, capsys, arguments, words):
    with pytest.raises(SystemExit) as end:
        main(["explore", *(str(runs[0]) if a == "RUN" else a for a in arguments), "--no-browser"])
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_or_another_is_taken():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        words = f"Port {port} of 127.0.0.1 can't be used (address already in use): choose another with --port."
        with pytest.raises(InputError, match=re.escape(words)):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", None) as first, listen("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1] != PORT


def test_addresses_are_those_to_open_on_this_machine():
    assert address_of("0.0.0.0", 80) == "http://127.0.0.1:80/"
    assert address_of("::1", 80) == "http://[::1]:80/"
    assert address_of("desk.local", 80) == "http://desk.local:80/"


def test_no_text_browser_is_opened_in_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not has_screen()
    monkeypatch.setitem(os.environ, "DISPLAY", ":0")
    assert has_screen()


def test_it_listens_at_this_machine_alone_unless_told():
    with listen("127.0.0.1", 0) as listener:
        assert listener.family == socket.AF_INET
        assert listener.getsockname()[0] == "127.0.0.1"
