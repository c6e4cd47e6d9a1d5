"""Connections that can't be held for nothing: by slow headers, unread answers or crowds of idle ones."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS = 10.0  # seconds for all of a request's headers, from the connection's start or the last answer's end
READING = 60.0  # seconds for a client to take what it was sent
# Open at once, under the 1,024 files that most systems allow: from there on the oldest that has no question under way
# makes room for a new one.
CONNECTIONS = 900


class Connection(H11Protocol):
    """Uvicorn's own, which by itself gives up on nobody who has sent one byte of a request."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.headers_timer: asyncio.TimerHandle | None = None
        self.reading_timer: asyncio.TimerHandle | None = None
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that we are told of whatever is not sent at once
        self.await_headers()
        if len(self.connections) > CONNECTIONS:
            idle = [each for each in self.connections if isinstance(each, Connection) and each.idle]
            min(idle, key=lambda each: each.idle_since).transport.abort()  # this one is idle too

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(self.headers_timer)
        self.end(self.reading_timer)
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether no whole question of this client is under way."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def await_headers(self) -> None:
        self.idle_since = self.loop.time()
        self.end(self.headers_timer)
        self.headers_timer = self.loop.call_later(HEADERS, self.give_up)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # the headers of a request are complete
            self.end(self.headers_timer)

    def on_response_complete(self) -> None:
        self.await_headers()  # before those that may have come already are looked at
        super().on_response_complete()

    def give_up(self) -> None:
        if self.flow.write_paused:  # the last answer is still being read, which has a limit of its own
            self.await_headers()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.reading_timer = self.loop.call_later(READING, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.end(self.reading_timer)

    @staticmethod
    def end(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
