"""Tiny runs, a server on a free port as a user would start it, and questions to it."""

import contextlib
import http.client
import json
import threading
import time

import torch
import uvicorn
from former_small import CONVOLUTION

import gammacaps
from gammacaps.data import load_set
from gammacaps.explorer.run import listen, served
from gammacaps.explorer.server import create_app
from gammacaps.models.folder import write_config, write_weights
from gammacaps.models.presets import to_config

TINY = {**CONVOLUTION, "filters": 8, "primary_types": 2, "hidden": (6,), "decoder": ()}


def make_run(folder, preset="small", *, train=None, names=None, **changes):
    """A run's folder with new weights, large enough that some capsules are active and some are not."""
    torch.manual_seed(3)
    model = gammacaps.create(preset, **({**TINY, **changes} if preset == "small" else changes))
    if preset == "small":
        with torch.no_grad():
            model.primary.convolution.weight *= 4
            for layer in model.routed:
                layer.weight *= 4
    folder.mkdir(parents=True)
    names = load_set("fashion-mini").class_names if names is None else names
    training = {"data": "fashion-mini", "robust": True, "eps": 0.1} if train is None else train
    write_config(folder, {"model": to_config(model), "train": training, "data": {"class_names": list(names)}})
    write_weights(folder, model.state_dict())
    return folder


@contextlib.contextmanager
def serving(networks, host="127.0.0.1"):
    """A server in a thread; gives its port and its app."""
    app = create_app(networks, host=host)
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(served(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield listener.getsockname()[1], app
        finally:
            server.should_exit = True
            thread.join(60)
    assert not thread.is_alive()


def request(port, method, path, body=None, headers=None, timeout=60):
    """Status, headers and content of an answer; a body that is not bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})}
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def asked(port, path, body=None):
    """The answer to a question that is answered; of several lines, the last."""
    status, _, content = request(port, "GET" if body is None else "POST", path, body)
    assert status == 200, content
    return json.loads(content.splitlines()[-1])
