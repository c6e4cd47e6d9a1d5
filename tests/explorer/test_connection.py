"""Connections that are held for nothing: closed after a while, and never in the way of others."""

import contextlib
import http.client
import socket
import threading
import time

import pytest
from serving import request, serving

from gammacaps.explorer import answers, connection

HEAD = b"GET /api/model HTTP/1.1\r\nHost: localhost\r\n"


def closed_after(client, before=b"", every=0.0):
    """Seconds until the server closes a connection, to which one more byte is sent from time to time."""
    start = time.monotonic()
    client.settimeout(every or 20)
    if before:
        client.sendall(before)
    while time.monotonic() - start < 20:
        try:
            if not client.recv(2**16):
                return time.monotonic() - start
        except TimeoutError:
            client.sendall(b"x")
        except ConnectionError:
            return time.monotonic() - start
    raise AssertionError("the connection stays open")


@pytest.mark.parametrize(("before", "every"), [(b"", 0), (HEAD, 0), (HEAD + b"x-slow: ", 0.1)])
def test_headers_that_do_not_end_are_given_up(port, monkeypatch, before, every):
    monkeypatch.setattr(connection, "HEADERS", 0.5)
    with socket.create_connection(("127.0.0.1", port)) as client:
        assert 0.4 < closed_after(client, before, every) < 5


@pytest.mark.slow
def test_the_next_request_of_a_connection_has_the_same_time(port, monkeypatch):
    monkeypatch.setattr(connection, "HEADERS", 0.5)
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(client):
        for _ in range(3):  # together longer than one may take
            client.request("GET", "/api/model")
            assert client.getresponse().read().startswith(b"{")
            time.sleep(0.2)
        assert 0.1 < closed_after(client.sock, HEAD + b"x-slow: ", 0.1) < 4  # before the 5 s of an idle connection


@pytest.mark.slow
def test_an_answer_may_take_longer_than_the_headers(networks, monkeypatch):
    monkeypatch.setattr(connection, "HEADERS", 0.1)
    monkeypatch.setattr(answers, "capsule", lambda *_: time.sleep(0.5) or {})
    with serving(networks) as (port, _):
        assert request(port, "GET", "/api/capsule?layer=1&capsule=0")[0] == 200


@pytest.mark.slow
def test_idle_connections_make_room_for_questions(networks, monkeypatch):
    monkeypatch.setattr(connection, "CONNECTIONS", 50)
    begun, release, found = threading.Event(), threading.Event(), []

    def capsule(*_):
        begun.set()
        release.wait(20)
        return {}

    monkeypatch.setattr(answers, "capsule", capsule)
    with serving(networks) as (port, _):
        slow = threading.Thread(target=lambda: found.append(request(port, "GET", "/api/capsule?layer=1&capsule=0")))
        slow.start()
        assert begun.wait(20)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(300)]
        try:
            for client in idle[::2]:
                with contextlib.suppress(ConnectionError):  # closed already, as is meant
                    client.sendall(HEAD)
            assert request(port, "GET", "/api/model")[0] == 200
            assert request(port, "POST", "/api/parse", {"image": {"sample": 3}})[0] == 200
            assert closed_after(idle[0]) < 5  # the oldest
        finally:
            release.set()
            slow.join()
            for client in idle:
                client.close()
    assert found[0][0] == 200  # what was under way was left alone


@pytest.mark.slow
def test_who_never_reads_the_answers_is_given_up(port, monkeypatch):
    monkeypatch.setattr(connection, "READING", 0.3)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        size = len(request(port, "GET", "/page/main.js")[2])
        many = 16 * 2**20 // size  # more than the system holds for a client
        client.sendall(b"GET /page/main.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * many)
        time.sleep(1.5)
        client.settimeout(20)
        taken = 0
        with contextlib.suppress(ConnectionError):
            while part := client.recv(2**20):
                taken += len(part)
    assert taken < many * size


def test_who_leaves_in_the_middle_of_a_question_is_no_fault(port, caplog):
    with caplog.at_level("WARNING"):
        with socket.create_connection(("127.0.0.1", port)) as client:
            head = b"POST /api/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert request(port, "GET", "/api/model")[0] == 200
        time.sleep(0.2)
    assert not caplog.records
