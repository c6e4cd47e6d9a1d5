"""The Hub is a server on this machine that keeps what it is given; no test needs a network."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

import gammacaps
from gammacaps.errors import InputError
from gammacaps.models import from_pretrained, push_to_hub
from gammacaps.models.hugging_face import card, prepare

TINY = {"filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()}
COMMIT = "0123456789012345678901234567890123456789"


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub's protocol as making a repository, committing to it and reading from it take."""

    files: dict[str, bytes]

    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = f"http://{self.headers['Host']}"
        if self.path == "/api/repos/create":
            return self.answer(200, json.dumps({"url": f"{address}/me/net", "name": "me/net"}).encode())
        if self.path == "/api/validate-yaml":  # of the card
            return self.answer(200, b'{"errors": [], "warnings": []}')
        if "/preupload/" in self.path:
            given = json.loads(body)["files"]
            plain = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in given]
            return self.answer(200, json.dumps({"files": plain}).encode())
        if "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            told = {"commitUrl": f"{address}/me/net/commit/{COMMIT}", "commitOid": COMMIT, "success": True}
            return self.answer(200, json.dumps(told).encode())
        return self.answer(404)

    def do_GET(self):
        repo, _, name = self.path.partition("/resolve/main/")
        if repo == "/me/net" and name in self.files:
            content = self.files[name]
            tag = f'"{hashlib.sha1(content).hexdigest()}"'
            return self.answer(200, content, ETag=tag, X_Repo_Commit=COMMIT)
        return self.answer(404, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")

    do_HEAD = do_GET


@pytest.fixture
def hub(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Hub.files = {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    yield Hub.files
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_network_comes_back_from_the_hub(hub):
    model = gammacaps.create("small", classes=4, **TINY).eval()
    assert push_to_hub(model, "me/net", token="hf_x").endswith("/me/net")
    assert sorted(hub) == ["README.md", "config.json", "model.safetensors"]
    assert 'from_pretrained("me/net")' in hub["README.md"].decode()
    again = from_pretrained("me/net")
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(again(images), model(images))
    with pytest.raises(InputError, match=r"could not be loaded from me/other \(.*owner/name"):
        from_pretrained("me/other")


def test_a_run_is_pushed_without_where_and_on_what_it_was_trained(tmp_path):
    run = tmp_path / "run"
    gammacaps.save(gammacaps.create("small", **TINY), run)
    config = json.loads((run / "config.json").read_text())
    config |= {"machine": {"device_name": "mine"}, "train": {"data": "/home/me/pets", "data_dir": "/home/me"}}
    config["data"] = {"name": "/home/me/pets", "source": "/home/me/pets", "class_names": ["cat", "dog"]}
    config["data"]["skipped"] = ["/home/me/pets/cat/1.png"]
    (run / "config.json").write_text(json.dumps(config))
    files = prepare(run, tmp_path / "new", "me/net")
    assert [file.name for file in files] == ["README.md", "config.json", "model.safetensors"]
    for file in files:
        assert b"/home/me" not in file.read_bytes()
        assert b"mine" not in file.read_bytes()
    assert "Trained on pets (cat, dog)." in files[0].read_text()
    images = torch.rand(2, 1, 28, 28)
    assert torch.equal(from_pretrained(tmp_path / "new")(images), gammacaps.load(run)(images))


@pytest.mark.parametrize(("architecture", "kind"), [("gamma", "capsule"), ("matrix", "capsule"), ("cnn", "plain")])
def test_a_card_says_which_kind_of_network_it_is(architecture, kind):
    network = {"architecture": architecture, "image_shape": (1, 28, 28), "classes": 10}
    assert f"A {kind} network for images of 1 x 28 x 28" in card({"model": network}, "me/net")
    with pytest.raises(InputError, match="There is no architecture 'cnm'"):
        card({"model": {**network, "architecture": "cnm"}}, "me/net")


def test_a_bad_name_and_a_missing_library_get_one_sentence(monkeypatch):
    model = gammacaps.create("small", **TINY)
    with pytest.raises(InputError, match="could not be pushed to a b c"):
        push_to_hub(model, "a b c")
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'gammacaps\[hub\]'"):
        push_to_hub(model, "me/net")
