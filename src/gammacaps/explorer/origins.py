"""Who may ask: this machine's own page and programs, and no page of another origin."""

import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page runs its own scripts alone and fetches from nowhere else. Drawings have inline styles.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


class OriginGuard:
    """Around the app: checks Host (a foreign name may have been pointed at this machine) and Origin."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        reason = why_not(scope, self.host)
        app = self.app if reason is None else JSONResponse({"error": reason}, 403)
        await app(scope, receive, with_headers)


def why_not(scope: Scope, bound: str) -> str | None:
    """Why a request is refused; None where it is not."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    name = hostname(f"http://{host}")
    if name is None or not allowed(name, bound):
        return "This server does not answer to that name: open the address that `gammacaps explore` printed."
    origin = headers.get("origin")
    foreign = headers.get("sec-fetch-site") == "cross-site" and not is_visit(scope, headers)
    if foreign or (origin is not None and origin != f"http://{host}"):
        return "Pages of another origin may not ask this server."
    return None


def is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether a browser's window goes to the page, as after a click on a shared view's address in a chat.

    Whoever sent it there learns nothing: the policies above keep the page out of frames and away from its opener.
    """
    wanted = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return wanted and scope["method"] == "GET" and scope["path"] == "/"


def allowed(name: str, bound: str) -> bool:
    """The names of this machine alone, or what it was told to listen at.

    Where it listens at every address, any address in numbers will do, since no name server can forge one.
    """
    if name in {"localhost", "127.0.0.1", "::1", bound.lower()}:
        return True
    if bound not in ("0.0.0.0", "::"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == socket.gethostname().lower()
    return True


def hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
