"""The server by real requests: who may ask, what is refused and how, and what it does under a crowd."""

import concurrent.futures
import json
import resource
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from serving import asked, request, serving

from gammacaps.explorer import answers, questions, server
from gammacaps.explorer.jobs import kept, lanes, queue
from gammacaps.explorer.jobs.job import Stopped
from gammacaps.explorer.origins import allowed

SAMPLE = {"image": {"sample": 3}}
# What a browser says of a click on a link in another site's page.
VISIT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def error(answer):
    status, _, content = answer
    return status, json.loads(content)["error"]


def test_the_interface_answers_as_documented(port):
    facts = asked(port, "/api/model")["networks"]
    assert [each["name"] for each in facts] == ["sda", "rba"]
    assert facts[0]["layers"][1] == {"name": "hidden 1", "capsules": 6}
    assert len(asked(port, "/api/samples?network=1&class=2&first=1&count=3")["samples"]) == 3
    assert len(asked(port, "/api/parse", SAMPLE)["scores"]) == 10
    assert asked(port, "/api/capsule?network=0&layer=1&capsule=3")["examples"]
    assert asked(port, "/api/activate", {"layer": 1, "capsule": 3, "starts": 1, "steps": 2})["answer"]["steps"] == 2
    attack = {**SAMPLE, "eps": 0.1, "attack": "fgsm"}
    assert asked(port, "/api/attack", attack)["answer"]["eps"] == 0.1
    assert asked(port, "/api/attack", attack)["answer"]["eps"] == 0.1  # kept


def test_an_attack_tells_its_progress_line_by_line(port, monkeypatch):
    monkeypatch.setattr(server, "EVERY", 0.005)
    _, headers, content = request(port, "POST", "/api/attack", {"image": {"sample": 21}, "eps": 0.1})
    *progress, last = [json.loads(line) for line in content.splitlines()]
    assert headers["content-type"].startswith("application/x-ndjson")
    assert {"done", "of"} == set(progress[-1])
    assert progress[-1]["of"] == 40
    assert [line["done"] for line in progress] == sorted(line["done"] for line in progress)
    assert last["answer"]["attack"] == "pgd"


def test_the_page_is_whole_and_nothing_else_can_be_fetched(port):
    status, headers, content = request(port, "GET", "/")
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert b"https://" not in content
    for name in ("main.js", "state.js", "explorer.css", "report.css"):
        assert request(port, "GET", f"/page/{name}")[0] == 200
    for path in ("/page/../server.py", "/page/..%2fserver.py", "/page/%2e%2e/server.py", "/etc/passwd", "/page/", "/x"):
        assert error(request(port, "GET", path)) == (404, "There is nothing here: the page is at /.")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name that was pointed at this machine
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Host": "["},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another port is another origin
        {"Sec-Fetch-Site": "cross-site"},
        {**VISIT, "Sec-Fetch-Dest": "iframe"},
        {**VISIT, "Sec-Fetch-Dest": "object"},
        {**VISIT, "Sec-Fetch-Mode": "no-cors"},
        {**VISIT, "Origin": "http://evil.example"},
        {**VISIT, "Host": "evil.example"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/model"])
def test_other_names_and_other_origins_are_refused(port, headers, path):
    status, words = error(request(port, "GET", path, headers=headers))
    assert status == 403
    assert "does not answer to that name" in words or "another origin" in words


def test_the_page_s_own_origin_may_ask(port):
    headers = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}
    assert request(port, "GET", "/api/model", headers=headers)[0] == 200


def test_a_link_in_another_site_s_page_leads_to_the_page_and_to_nothing_else(port):
    status, headers, content = request(port, "GET", "/", headers=VISIT)
    assert (status, content[:15]) == (200, b"<!doctype html>")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-opener-policy"] == "same-origin"
    for method, path in (("POST", "/"), ("HEAD", "/"), ("GET", "/page/main.js"), ("GET", "/api/model")):
        assert request(port, method, path, headers=VISIT)[0] == 403
    assert request(port, "POST", "/api/parse", SAMPLE, VISIT)[0] == 403


def test_where_it_listens_everywhere_addresses_are_let_in_and_names_are_not():
    assert allowed("192.168.1.7", "0.0.0.0")
    assert allowed("fe80::1", "::")
    assert not allowed("evil.example", "0.0.0.0")
    assert not allowed("192.168.1.7", "127.0.0.1")
    assert allowed("desk.local", "desk.local")


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "words"),
    [
        ("/api/parse", b"{", {"content-type": "application/json"}, 400, "The question is no JSON"),
        ("/api/parse", b"[" * 50000, {"content-type": "application/json"}, 400, "The question is no JSON"),
        ("/api/parse", b"\xff", {"content-type": "application/json"}, 400, "The question is no JSON"),
        ("/api/parse", b"{}", {"content-type": "text/plain"}, 415, "Questions are JSON"),
        ("/api/parse", b"{}", {}, 415, "Questions are JSON"),
        ("/api/parse", b" " * 10**6, {"content-type": "application/json"}, 413, "too large"),
        ("/api/parse", {"image": {"pixels": "A" * 66000}}, {}, 400, "images of 1 x 28 x 28 bytes"),
        ("/api/parse", {**SAMPLE, "tau": 10**400}, {}, 400, "tau must be a number from 0 to 0.99"),
        ("/api/parse", {**SAMPLE, "\ud800": 1}, {}, 400, "There is no field '\\ud800'"),  # half a surrogate pair
        ("/api/parse", {"image": {"pixels": "\ud800"}}, {}, 400, "The pixels are no base64"),
        ("/api/attack", {**SAMPLE, "attack": "\ud800"}, {}, 400, "There is no attack '\\ud800'"),
        ("/api/attack", {**SAMPLE, "eps": 1e-320}, {}, 400, "eps must be 0 or a number from 1e-06 to 1"),
        ("/api/attack", {**SAMPLE, "eps": 2}, {}, 400, "eps must be a number from 0 to 1"),
        ("/api/activate", {"layer": 7, "capsule": 0}, {}, 400, "layer must be a whole number"),
        ("/api/model", {}, {}, 405, "can't be asked in that way"),
    ],
)
def test_what_can_t_be_answered_is_told(port, path, body, headers, status, words):
    found, said = error(request(port, "POST", path, body, headers))
    assert found == status
    assert words in said


@pytest.mark.parametrize(
    "query",
    ["samples?count=1000", "samples?class=x", "samples?file=1", "capsule?layer=1", "capsule?layer=-1&capsule=0"],
)
def test_queries_that_make_no_sense_are_told(port, query):
    assert request(port, "GET", f"/api/{query}")[0] == 400


@pytest.mark.slow
def test_no_depth_of_a_value_is_a_fault(port):
    """Near the depth at which JSON is no longer read, a value may be read and still be too deep to be repeated."""
    for depth in range(800, 1000):
        for value in (f'"sample": {"[" * depth}{"]" * depth}', f'"pixels": {"[" * depth}{"]" * depth}'):
            body = ("{" + f'"image": {{{value}}}' + "}").encode()
            assert request(port, "POST", "/api/parse", body, {"content-type": "application/json"})[0] == 400


def test_a_chunked_body_has_the_same_limit(port):
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        head = "POST /api/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        part = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for _ in range(3):
            connection.sendall(part)
        assert b" 413 " in connection.recv(200)


def test_a_question_that_does_not_arrive_is_given_up(port, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.1)
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        head = "POST /api/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall((head + "Content-Length: 100\r\n\r\n{").encode())
        assert b" 408 " in connection.recv(200)


def test_a_fault_of_our_own_is_told_and_the_server_goes_on(port, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(answers, "parse", broken)
        patch.setattr(answers, "attack", broken)
        assert error(request(port, "POST", "/api/parse", {"image": {"sample": 77}})) == (500, server.FAULT)
        _, _, content = request(port, "POST", "/api/attack", {"image": {"sample": 77}})
        assert json.loads(content.splitlines()[-1]) == {"error": server.FAULT}
    assert request(port, "POST", "/api/parse", {"image": {"sample": 77}})[0] == 200


@pytest.mark.parametrize("path", ["/api/attack", "/api/capsule"])
def test_work_for_a_client_that_goes_away_is_stopped(networks, monkeypatch, path):
    begun, release, ends = threading.Event(), threading.Event(), []

    def attack(asked, network, tick):
        begun.set()
        try:
            while not release.wait(0.002):
                tick(1, 2)
        except Stopped:
            ends.append("stopped")
            raise
        return {}

    def capsule(*given):  # tells no progress: it can't be stopped once it has begun, but nobody waits for it
        begun.set()
        release.wait(120)
        ends.append("released")
        return {}

    monkeypatch.setattr(answers, "attack", attack)
    monkeypatch.setattr(answers, "capsule", capsule)
    with serving(networks) as (port, app):
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as connection:
                body = json.dumps(SAMPLE)
                if path == "/api/attack":
                    words = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    words += f"Content-Length: {len(body)}\r\n\r\n{body}"
                else:
                    words = f"GET {path}?layer=1&capsule=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                connection.sendall(words.encode())
                assert begun.wait(60)
                (job,) = app.state.lanes.jobs["slow"].values()
                assert (job.wanted, job.stop.is_set()) == (1, False)
                # Gone at once, without a farewell.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert job.stop.wait(60)
            assert job.wanted == 0
            assert request(port, "POST", "/api/parse", SAMPLE)[0] == 200  # meanwhile, by the other lane
            deadline = time.monotonic() + 60
            while path == "/api/attack" and not ends and time.monotonic() < deadline:
                time.sleep(0.01)
            assert ends == (["stopped"] if path == "/api/attack" else [])
        finally:
            release.set()


@pytest.mark.slow
def test_parses_that_wait_share_a_pass_and_each_gets_its_own_answer(networks, monkeypatch):
    begun, release, sizes = threading.Event(), threading.Event(), []
    passes, parse = answers.passes, answers.parse

    def counted(asked, network):
        sizes.append(len(asked))
        return passes(asked, network)

    def held(asked, network, found):
        if asked.image == {"sample": 0}:
            begun.set()
            release.wait(20)
        return parse(asked, network, found)

    monkeypatch.setattr(answers, "passes", counted)
    monkeypatch.setattr(answers, "parse", held)
    monkeypatch.setattr(queue, "PASS", 1000)  # seconds: to be held looks slow
    bodies = [{"image": {"sample": k}, "tau": 0.1 + 0.05 * k, "last": k % 2 == 0} for k in range(1, 7)]
    bodies += [{"network": 1, "image": {"sample": 1}}, {"image": {"sample": 1}, "off": [[1, 0]]}]  # by other networks
    with serving(networks) as (port, app), concurrent.futures.ThreadPoolExecutor(9) as pool:
        first = pool.submit(request, port, "POST", "/api/parse", {"image": {"sample": 0}})
        assert begun.wait(20)
        others = [pool.submit(request, port, "POST", "/api/parse", body) for body in bodies]
        deadline = time.monotonic() + 20
        while len(app.state.lanes.jobs["quick"]) < 9 and time.monotonic() < deadline:
            time.sleep(0.01)
        release.set()
        assert first.result()[0] == 200
        found = [other.result() for other in others]
    assert sorted(sizes) == [1, 1, 1, 6]
    for body, (status, _, content) in zip(bodies, found, strict=True):
        assert status == 200
        asked = questions.read_parse(body, networks)
        assert_alike(json.loads(content), json.loads(server.dumped(parse(asked, networks[asked.network]))))


def assert_alike(one, other, within=2e-4):
    """The same structure, and numbers but for the rounding of sums, which may differ by a batch's size."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in set(one) - {"drawings"}:  # which tell the same numbers
            assert_alike(one[key], other[key])
        assert [len(each) for each in one.get("drawings", ())] == [len(each) for each in other.get("drawings", ())]
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_alike(*pair)
    else:
        assert one == (pytest.approx(other, abs=within) if isinstance(one, float) else other)


@pytest.mark.slow
def test_a_crowd_is_answered_or_politely_refused_and_leaves_no_memory_behind(networks, monkeypatch):
    """200 questions at once and then 20 attacks; all different, so that none is answered from what is kept."""
    monkeypatch.setattr(kept, "KEPT", 2**20)  # bytes: what is kept must not hide what is lost
    monkeypatch.setattr(lanes, "REST", 0.2)
    monkeypatch.setitem(lanes.WAITING, "quick", 150)
    monkeypatch.setitem(lanes.WAITING, "slow", 15)

    def crowd(port, path, bodies):
        with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            return list(pool.map(lambda body: request(port, "POST", path, body, timeout=120), bodies))

    def load(port, shift, parses=200, attacks=20):
        few = {"tau": 0.9 + shift}  # few active capsules, which are drawn quickly
        samples = [{"image": {"sample": k}, **few} for k in range(parses)]
        attacked = [{"image": {"sample": k}, **few, "attack": "fgsm"} for k in range(attacks)]
        return crowd(port, "/api/parse", samples), crowd(port, "/api/attack", attacked)

    with serving(networks) as (port, app):
        load(port, 0, 60, 5)  # so that threads, caches and allocators have what they will keep
        before = memory()
        parses, attacks = load(port, 0.01)
        for each in (parses, attacks):
            assert {status for status, _, _ in each} <= {200, 503}
        assert sum(status == 200 for status, _, _ in parses) >= 150
        for status, headers, content in parses + attacks:
            if status == 503:
                assert int(headers["retry-after"]) >= 1
                assert json.loads(content)["error"] == server.BUSY
        assert all(b'"answer"' in content for status, _, content in attacks if status == 200)
        assert request(port, "GET", "/api/model")[0] == 200
        assert all(not jobs for jobs in app.state.lanes.jobs.values())
        assert app.state.lanes.kept.size <= 2**20
        deadline = time.monotonic() + 60
        while memory() - before > 20 * 2**20:
            assert time.monotonic() < deadline, "the server never gave its memory back"
            time.sleep(0.1)


def memory():
    """Bytes that the process has in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
