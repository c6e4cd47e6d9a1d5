"""`gammacaps explore`: loads the networks, listens, and opens the page."""

import contextlib
import errno
import gc
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from gammacaps.errors import InputError
from gammacaps.explorer.config import ExploreConfig
from gammacaps.explorer.connection import Connection
from gammacaps.explorer.networks import load_networks
from gammacaps.explorer.second_process import helper_for
from gammacaps.explorer.server import create_app
from gammacaps.explorer.static.folder import PAGE, check_ours, write_folder

PORT = 8717


def explore(names: Sequence[str], config: ExploreConfig) -> None:
    """Serves until it is interrupted, or writes the page into a folder."""
    if config.static is not None:
        write_static(names, config, Path(config.static))
        return
    networks = load_networks(names, config)
    with contextlib.ExitStack() as ends:
        listener = ends.enter_context(listen(config.host, config.port))
        # What is there now stays, and what answers are made of goes by itself: neither needs much looking through.
        gc.freeze()
        gc.set_threshold(20_000)
        helper = helper_for(networks, listener)
        if helper is not None:
            ends.enter_context(contextlib.closing(helper))
        address = address_of(config.host, listener.getsockname()[1])
        shown = " and ".join(network.name for network in networks)
        print(f"Exploring {shown} at {address} (Ctrl-C ends it)", flush=True)
        if config.browser and has_screen():
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        server = uvicorn.Server(served(create_app(networks, host=config.host, helper=helper)))
        with contextlib.suppress(KeyboardInterrupt):  # which comes or not by when the signal does
            server.run(sockets=[listener])
        print("The explorer has ended.", file=sys.stderr)


def write_static(names: Sequence[str], config: ExploreConfig, folder: Path) -> None:
    check_ours(folder)  # before the networks are loaded, which takes a while
    write_folder(load_networks(names, config), folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    told = f"Wrote {folder / PAGE} ({size / 1e6:.1f} MB with its scripts)"
    print(f"{told}: open it in a browser, or put the folder on a web server.")
    print("The network's weights and its test images are in the folder: whoever gets the page has them too.")


def served(app: Starlette) -> uvicorn.Config:
    """How the app is served: with connections of our own, and nothing told of usual requests."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )


def listen(host: str, port: int | None) -> socket.socket:
    """A socket at this address; where no port is named, the usual one or any that is free."""
    for choice in (port,) if port is not None else (PORT, 0):
        try:
            family = socket.getaddrinfo(host, choice, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((host, choice), family=family, backlog=512)
        except OSError as error:
            if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                raise InputError(f"There is no address {host!r} on this machine: use --host 127.0.0.1.") from None
            if choice == PORT and port is None:
                continue
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise InputError(f"Port {choice} of {host} can't be used ({reason}): choose another with --port.") from None
    raise AssertionError("the loop returns or raises")


def address_of(host: str, port: int) -> str:
    """Where to look from this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}/"


def has_screen() -> bool:
    """Whether a browser would have a window: a text browser in the terminal is not what anybody wants."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
