"""The server: the page's own files, held in memory, and a small JSON interface to the networks behind it."""

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gammacaps.errors import InputError
from gammacaps.explorer import answers, plain_values, questions
from gammacaps.explorer.jobs.job import Call, Calls, Job
from gammacaps.explorer.jobs.lanes import Busy, Lanes
from gammacaps.explorer.jobs.queue import Helps
from gammacaps.explorer.networks import Network
from gammacaps.explorer.origins import OriginGuard

KINDS = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
MOST_BYTES = 2**16  # of a question, and what its pixels take beside
PATIENCE = 10.0  # seconds for a question to arrive
EVERY = 0.1  # seconds between two looks at a job's progress
MOST_SAMPLES = 100
FAULT = "Something went wrong in the server: its terminal says more."
BUSY = "The server has its hands full: try again in a moment."
log = logging.getLogger(__name__)


def create_app(networks: Sequence[Network], *, host: str = "127.0.0.1", helper: Helps | None = None) -> Starlette:
    """The page and the interface for these networks, for an ASGI server that listens at `host`."""
    calls = parse_calls(networks)
    channels, height, width = networks[0].model.image_shape
    limit = MOST_BYTES + 2 * channels * height * width
    page = page_files()

    def ask(question: Any, call: Call) -> bytes | Job:
        """A kept answer, or the job that makes it."""
        key = key_of(question)
        return lanes.find(key) or lanes.job("slow", key, call)

    async def get_page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in page:
            raise HTTPException(404, "There is no such file: the page is at /.")
        return Response(page[name], media_type=KINDS[name.rpartition(".")[2]])

    async def get_model(request: Request) -> Response:
        return JSONResponse({"networks": [answers.described(network) for network in networks]})

    async def get_samples(request: Request) -> Response:
        asked = whole_numbers(request, ("network", "class", "first", "count"))
        network = networks[plain_values.whole("network", asked.get("network", 0), 0, len(networks) - 1)]
        label = asked.get("class")
        if label is not None:
            plain_values.whole("class", label, 0, len(network.class_names) - 1)
        first = plain_values.whole("first", asked.get("first", 0), 0, 10**6)
        count = plain_values.whole("count", asked.get("count", 40), 1, MOST_SAMPLES)
        return JSONResponse(answers.samples(network, label, first, count))

    async def get_capsule(request: Request) -> Response:
        place, layer, capsule = questions.read_capsule(
            whole_numbers(request, ("network", "layer", "capsule")), networks
        )
        question = CapsuleQuestion(place, layer, capsule)
        made = ask(question, lambda tick: dumped(answers.capsule(networks[place], layer, capsule)))
        return await whole_answer(request, made)

    async def post_parse(request: Request) -> Response:
        asked = questions.read_parse(await body_of(request, limit), networks)
        key = key_of(asked)
        made = lanes.find(key) or lanes.share("quick", key, answers.group_of(asked, networks), asked, calls)
        return await whole_answer(request, made)

    async def post_attack(request: Request) -> Response:
        asked = questions.read_attack(await body_of(request, limit), networks)
        if asked.coarse:  # a slider is being dragged: it waits behind no generated input
            key = key_of(asked)
            return streamed(lanes.find(key) or lanes.share("quick", key, None, asked, calls))
        network = networks[asked.network]
        made = ask(asked, lambda tick: dumped(answers.attack(asked, network, tick)))
        return streamed(made)

    async def post_breaking(request: Request) -> Response:
        asked = questions.read_breaking(await body_of(request, limit), networks)
        network = networks[asked.network]
        return streamed(ask(asked, lambda tick: dumped(answers.breaking(asked, network, tick))))

    async def get_patches(request: Request) -> Response:
        asked = whole_numbers(request, ("network",))
        place = plain_values.whole("network", asked.get("network", 0), 0, len(networks) - 1)
        question = PatchesQuestion(place)
        made = ask(question, lambda tick: dumped(answers.patches(networks[place], tick)))
        return await whole_answer(request, made)

    async def post_activate(request: Request) -> Response:
        asked = questions.read_activate(await body_of(request, limit), networks)
        network = networks[asked.network]
        made = ask(asked, lambda tick: dumped(answers.activated(asked, network, tick)))
        return streamed(made)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        lanes.close()

    lanes = Lanes(helper)
    routes = [
        Route("/", get_page),
        Route("/page/{name}", get_page),
        Route("/api/model", get_model),
        Route("/api/samples", get_samples),
        Route("/api/capsule", get_capsule),
        Route("/api/patches", get_patches),
        Route("/api/parse", post_parse, methods=["POST"]),
        Route("/api/attack", post_attack, methods=["POST"]),
        Route("/api/breaking", post_breaking, methods=["POST"]),
        Route("/api/activate", post_activate, methods=["POST"]),
    ]
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        HTTPException: tell_http,
        InputError: tell_input,
        Busy: tell_busy,
        Exception: tell_fault,
    }
    app = Starlette(
        routes=routes,
        middleware=[Middleware(OriginGuard, host=host)],
        exception_handlers=handlers,
        lifespan=lifespan,
    )
    app.state.lanes = lanes
    return app


@dataclasses.dataclass(frozen=True)
class CapsuleQuestion:
    network: int
    layer: int
    capsule: int


@dataclasses.dataclass(frozen=True)
class PatchesQuestion:
    network: int


def parse_calls(networks: Sequence[Network]) -> Calls:
    """How questions for parses that share a pass are answered: the pass, and for each what makes its answer of it.

    A coarse attack comes here too, alone.
    """

    def calls(asked: Sequence[questions.ParseQuestion]) -> list[Call]:
        first, network = asked[0], networks[asked[0].network]
        if isinstance(first, questions.AttackQuestion):
            return [lambda tick: dumped(answers.attack(first, network, tick))]

        def call(one: questions.ParseQuestion, passed: answers.Passed) -> Call:
            return lambda tick: dumped(answers.parse(one, network, passed))

        return [call(*each) for each in zip(asked, answers.passes(asked, network), strict=True)]

    return calls


def key_of(question: Any) -> str:
    """All that an answer hangs on: networks never change."""
    words = json.dumps([type(question).__name__, dataclasses.asdict(question)], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()


def page_files() -> dict[str, bytes]:
    """All that can be fetched, by name: no path from outside ever reaches the file system."""
    own = [file for file in (files("gammacaps.explorer") / "page").iterdir() if file.name.rpartition(".")[2] in KINDS]
    return {file.name: file.read_bytes() for file in own} | {
        "report.css": (files("gammacaps.reporting") / "page.css").read_bytes()
    }


def whole_numbers(request: Request, names: Sequence[str]) -> dict[str, Any]:
    """The query's values as whole numbers; what is none stays as it is, for the reader to refuse."""
    numbers: dict[str, Any] = {}
    for name, value in plain_values.known(dict(request.query_params), names).items():
        numbers[name] = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value
    return numbers


async def body_of(request: Request, limit: int) -> Any:
    """A question's JSON, of at most so many bytes, sent as what it is."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "Questions are JSON: send them with the header content-type: application/json.")
    too_long = HTTPException(413, f"That is too large: a question may have {limit:,} bytes.")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise too_long
    content = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                content += part
                if len(content) > limit:
                    raise too_long
    except TimeoutError:
        raise HTTPException(408, "The question took too long to arrive: send it again.") from None
    except ClientDisconnect:  # in the middle of its question: nobody will see the answer
        raise HTTPException(400, "The question did not arrive whole: send it again.") from None
    try:
        return json.loads(bytes(content))
    except (ValueError, RecursionError):
        raise InputError("The question is no JSON: send an object such as {...}.") from None


async def whole_answer(request: Request, made: bytes | Job) -> Response:
    """Waits for an answer, or until whoever asked has gone."""
    if isinstance(made, bytes):
        return Response(made, media_type="application/json")
    gone = asyncio.ensure_future(gone_away(request))
    waited: list[asyncio.Future[Any]] = [made.answer, gone]
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if made.answer.done() and not made.answer.cancelled():
            return Response(made.answer.result(), media_type="application/json")
        return JSONResponse({"error": "This was stopped: ask again."}, 503)
    finally:
        gone.cancel()
        made.leave()


async def gone_away(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def streamed(made: bytes | Job) -> Response:
    """Lines of JSON: {"done": 3, "of": 40} while it is worked on, then {"answer": ...} or {"error": ...}."""
    lines = progress_lines(made)
    return StreamingResponse(lines, media_type="application/x-ndjson", headers={"x-accel-buffering": "no"})


async def progress_lines(made: bytes | Job) -> AsyncIterator[bytes]:
    if isinstance(made, bytes):
        yield b'{"answer":' + made + b"}\n"
        return
    progress: tuple[int, int] = (0, 0)
    try:
        while not (await asyncio.wait([made.answer], timeout=EVERY))[0]:
            progress = made.progress or progress
            # Also where nothing is new, so that it is noticed when nobody listens any more.
            yield dumped({"done": progress[0], "of": progress[1]}) + b"\n"
        yield last_line(made)
    finally:
        made.leave()


def last_line(made: Job) -> bytes:
    error = None if made.answer.cancelled() else made.answer.exception()
    if made.answer.cancelled() or isinstance(error, InputError):
        return dumped({"error": str(error or "This was stopped: ask again.")}) + b"\n"
    if error is not None:
        log.error("An answer failed", exc_info=error)
        return dumped({"error": FAULT}) + b"\n"
    return b'{"answer":' + made.answer.result() + b"}\n"


async def tell_http(request: Request, error: HTTPException) -> Response:
    words = {404: "There is nothing here: the page is at /.", 405: "This can't be asked in that way."}
    said = words.get(error.status_code, error.detail)
    return JSONResponse({"error": said}, error.status_code, headers=error.headers)


async def tell_input(request: Request, error: InputError) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def tell_busy(request: Request, error: Busy) -> Response:
    return JSONResponse({"error": BUSY}, 503, headers={"retry-after": str(error.seconds)})


async def tell_fault(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": FAULT}, 500)


def dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
