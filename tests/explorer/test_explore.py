"""`gammacaps explore` as a user starts it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere"),
        (["RUN", "--port", "70000"], "from 0 to 65535"),
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
