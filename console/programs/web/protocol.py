"""One connection of the web server: uvicorn's, with bounds of time for both sides.

uvicorn waits for ever for the rest of a request's head, and for a client to take its answer. The
body's time is bounded by `console.base.common.bodies`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from console.programs.web.connections import Connections
from console.programs.web.reads import Reads

# The whole head of a request arrives within so many seconds: of the connection for the first one,
# and for the next ones of the end of the answer before, beside the time that a connection may idle.
HEAD_WITHIN_S = 10.0
# Of an answer that the kernel does not take whole, a client takes so many bytes a second.
TAKEN_PER_S = 1024
TAKEN_EVERY_S = 30.0
LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n"
    b"cache-control: no-store\r\n\r\n"
)


class BoundedProtocol(H11Protocol):
    """A connection of `network`, which is in `open_connections` until it is closed.

    `reads` is None for a connection that is always read, such as one of our proxy.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        network: str,
        open_connections: Connections[BoundedProtocol],
        reads: Reads | None,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._network = network
        self._open = open_connections
        self._reads = reads
        self._deadline: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._unread = bytearray()
        self._has_begun = False
        self._is_ended = False
        # Whether an answer is complete, and the client has not taken enough of it yet.
        self._is_untaken = False
        open_connections.add(network, self)

    def serves(self) -> bool:
        """Whether a request is under way: its head has arrived, its answer is not complete."""
        # uvicorn declares it as if there were always one.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def abort(self) -> None:
        """Ends the connection at once; a request that is under way hears that it has ended."""
        self._is_ended = True
        self._open.remove(self._network, self)
        if self.transport is not None:
            self.transport.abort()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._is_ended:
            # It made room for another one before it began.
            transport.abort()
            return
        self._await_head(HEAD_WITHIN_S)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._open.remove(self._network, self)
        self._unread.clear()
        for timer in (self._deadline, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        # Otherwise it would hold the connection until it is due.
        self._unset_keepalive_if_required()

    @override
    def data_received(self, data: bytes) -> None:
        """Parses what was read, once the address may read again."""
        if self._unread:
            self._unread += data
        elif self._reads is None or self._reads.take(self._network):
            self._parse(data)
        else:
            # An idle connection is not closed while what it sent waits.
            self._unset_keepalive_if_required()
            self._unread += data
            self.transport.pause_reading()
            self._reads.wait(self._network, self._read_on)

    def _read_on(self) -> None:
        data = bytes(self._unread)
        self._unread.clear()
        if self.transport.is_closing():
            return
        if not self.flow.read_paused:
            self.transport.resume_reading()
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        self._has_begun = True
        super().data_received(data)

    @override
    def handle_events(self) -> None:
        """Begins the requests that were sent, but none before the last answer is taken."""
        if self._is_untaken:
            self.flow.pause_reading()
            return
        super().handle_events()
        if self.serves() and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    @override
    def on_response_complete(self) -> None:
        if self.flow.write_paused and not self.transport.is_closing():
            self._is_untaken = True
            return
        self._has_begun = False
        # First: a request that was sent behind this one may begin within the following call.
        self._await_head(self.timeout_keep_alive + HEAD_WITHIN_S)
        super().on_response_complete()

    def _await_head(self, within_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(within_s, self._end_late, within_s)

    def _end_late(self, within_s: float) -> None:
        """Ends a connection whose head did not come in time; not for bytes that wait for us."""
        if self._unread or (self.transport.get_write_buffer_size() and self._taking is not None):
            self._await_head(within_s)
            return
        if self._has_begun and not self.transport.is_closing():
            self.transport.write(LATE)
        self.abort()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._taking is None:
            self._await_taking()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
        if self._is_untaken:
            self._is_untaken = False
            self.on_response_complete()
            # Where the body of the request was not complete, the rest of it is parsed now.
            self.handle_events()

    def _await_taking(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(TAKEN_EVERY_S, self._check_taken, unsent)

    def _check_taken(self, unsent: int) -> None:
        if self.transport.get_write_buffer_size() > unsent - TAKEN_PER_S * TAKEN_EVERY_S:
            self.abort()
        else:
            self._await_taking()
