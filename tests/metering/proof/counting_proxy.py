"""A TCP proxy before a broker that counts record batches in both directions by reading the frames.

Egress is what the broker handed over: the proxy reads every byte of its answers at once, whether
the client still reads or not, so that nothing that the broker sent stays unseen in a socket. An
answer counts once it is complete: none ends in the middle but by the end of its broker. Ingress is
what was acknowledged without an error. What the service's own user asks for counts for whom its
request names.

It listens on loopback only, and runs in a thread of its own; its records may be read at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Container, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from brokers.secrets import SUPER_USER
from tests.metering.proof import frames
from tests.metering.proof.frames import Part, RequestHead, Topic

ANONYMOUS = "User:ANONYMOUS"
SERVICE = f"User:{SUPER_USER}"
READ_AHEAD_BYTES = 1 << 24
# What a broker may take to end a connection whose client said that it is done. Never reached when
# all is well.
DRAIN_SECONDS = 60.0
# How long a client may leave what was sent to it in its socket once the broker's side has ended.
TAKE_SECONDS = 5.0
# As the broker's own limit, with room: a length beyond it is no Kafka.
FRAME_BYTES_MAX = 512 << 20


@dataclass(frozen=True)
class Counted:
    """Record batches of one partition in one frame. `at_ms`: Unix time at which it was whole."""

    topic: Topic
    partition: int
    principal: str
    size: int
    at_ms: int
    port: int = 0
    """Of the proxy through which it passed."""


@dataclass
class Seen:
    """What a proxy saw, in order."""

    handed: list[Counted] = field(default_factory=list)
    sent: list[Counted] = field(default_factory=list)
    """What clients sent, again where they tried again, before the broker had any of it."""
    acked: list[Counted] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class Waiting:
    """A request that has no answer yet, with the bytes that it carried."""

    head: RequestHead
    parts: list[Part]
    principal: str
    """Who pays for it."""


def total(
    counted: list[Counted],
    names: Mapping[str, str],
    *,
    since_ms: int = 0,
    until_ms: int | None = None,
    ports: Container[int] | None = None,
) -> dict[tuple[str, str], int]:
    """Bytes by (topic id in hex, principal), of frames that were whole in [since, until).

    `names`: topic names to ids; `ports`: of proxies, None for all. Raises `KeyError` for a name
    that is not among them.
    """
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for one in list(counted):
        is_due = one.at_ms >= since_ms and (until_ms is None or one.at_ms < until_ms)
        if is_due and (ports is None or one.port in ports):
            topic = names[one.topic] if isinstance(one.topic, str) else one.topic.hex
            sums[topic, one.principal] += one.size
    return dict(sums)


class Connection:
    """One client's connection, and the one to the broker that was opened for it."""

    def __init__(self, seen: Seen, now_ms: Callable[[], int], port: int = 0) -> None:
        self.seen, self.now_ms, self.port = seen, now_ms, port
        self.waiting: dict[int, Waiting] = {}
        self.principal = ANONYMOUS
        self.mechanism = ""

    def request(self, frame: bytes) -> None:
        """Records a request that a client sends."""
        head = RequestHead.of(frame)
        parts: list[Part] = []
        payer = frames.payer_of(frame, head) if self.principal == SERVICE else None
        who = payer or self.principal
        if head.api == frames.PRODUCE:
            acks, parts = frames.parse_produce_request(frame, head.version)
            self.seen.sent += [self._counted(part, who) for part in parts]
            if acks == 0:
                return  # never answered
        elif head.api == frames.SASL_HANDSHAKE:
            self.mechanism = frames.parse_mechanism(frame, head.version)
        elif head.api == frames.SASL_AUTHENTICATE:
            user = frames.user_name(frame, head.version, self.mechanism)
            self.principal = f"User:{user}" if user else self.principal
        self.waiting[head.correlation] = Waiting(head, parts, who)

    def response(self, frame: bytes) -> None:
        """Counts a broker's answer."""
        (correlation,) = struct.unpack_from(">i", frame)
        waiting = self.waiting.pop(correlation)
        version = waiting.head.version
        if waiting.head.api == frames.FETCH:
            parts = frames.parse_fetch_response(frame, version)
            who = waiting.principal
            self.seen.handed += [self._counted(part, who) for part in parts if part.size]
        elif waiting.head.api == frames.PRODUCE:
            answers = frames.parse_produce_response(frame, version)
            taken = {(one.topic, one.partition) for one in answers if one.error_code == 0}
            self.seen.acked += [
                self._counted(part, waiting.principal)
                for part in waiting.parts
                if (part.topic, part.partition) in taken
            ]

    def _counted(self, part: Part, principal: str) -> Counted:
        now_ms = self.now_ms()
        return Counted(part.topic, part.partition, principal, part.size, now_ms, self.port)


class CountingProxy:
    """Listens on a port of its own and forwards to `target`; `with` runs it.

    Where it listens at another host than the target, answers name its host in place of the
    target's, so that a client that hears of servers finds the proxies before them, on the same
    ports. Both names must be of one length, and stand in no record.
    """

    def __init__(
        self,
        target: str,
        port: int = 0,
        now_ms: Callable[[], int] | None = None,
        *,
        host: str = "127.0.0.1",
        seen: Seen | None = None,
    ) -> None:
        """`seen`: where it notes what it sees, by default one of its own."""
        self._now_ms = now_ms or unix_ms
        target_host, _, target_port = target.rpartition(":")
        self.target = (target_host, int(target_port))
        self.host, self.port = host, port
        self._names = (target_host.encode(), host.encode())
        self.seen = seen or Seen()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._leave: asyncio.Event
        self._connections: set[asyncio.Task[None]] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        """The `host:port` that clients connect to."""
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Self:
        """Starts it."""
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes every connection, once the broker's side of it is read to its end."""
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._leave = asyncio.Event()
        server = await asyncio.start_server(
            self._accept, self.host, self.port, limit=READ_AHEAD_BYTES
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._leave.wait()
        server.close()
        for requests in list(self._requests):
            requests.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=DRAIN_SECONDS)
        for connection in list(self._connections):
            self.seen.errors.append("a connection did not end")
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await server.wait_closed()

    async def _accept(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._forward(from_client, to_client)
        except OSError:
            pass  # the broker is down; its client sees that its connection ends
        except (frames.FrameError, KeyError) as error:
            self.seen.errors.append(repr(error))
        finally:
            await close_connection(to_client)
            self._connections.discard(task)

    async def _forward(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        from_broker, to_broker = await asyncio.open_connection(*self.target, limit=READ_AHEAD_BYTES)
        connection = Connection(self.seen, self._now_ms, self.port)
        requests = asyncio.create_task(self._requests_of(from_client, connection, to_broker))
        self._requests.add(requests)
        try:
            async for frame in frames_of(from_broker):
                connection.response(frame)
                send_frame(to_client, frame.replace(*self._names))
        finally:
            requests.cancel()
            await asyncio.wait([requests])
            self._requests.discard(requests)
            await close_connection(to_broker)

    async def _requests_of(
        self,
        from_client: asyncio.StreamReader,
        connection: Connection,
        to_broker: asyncio.StreamWriter,
    ) -> None:
        """Forwards requests. What the broker still answers when the client is gone is read on."""
        try:
            async for frame in frames_of(from_client):
                connection.request(frame)
                send_frame(to_broker, frame)
        except (frames.FrameError, KeyError) as error:
            self.seen.errors.append(repr(error))
        finally:
            if not to_broker.is_closing():
                # A killed broker cannot get the request.
                with contextlib.suppress(OSError):
                    to_broker.write_eof()


async def frames_of(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Whole frames without their lengths, until the other side is gone; a cut one is left out."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            (size,) = struct.unpack(">i", await stream.readexactly(4))
            if not 0 < size <= FRAME_BYTES_MAX:
                message = f"a frame of {size} bytes"
                raise frames.FrameError(message)
            yield await stream.readexactly(size)


def send_frame(stream: asyncio.StreamWriter, frame: bytes) -> None:
    """Sends a frame if the receiver is still connected. It never waits, so reading never waits."""
    if not stream.is_closing():
        stream.writelines([struct.pack(">i", len(frame)), frame])


async def close_connection(stream: asyncio.StreamWriter) -> None:
    """Closes a connection, once what was sent is taken, or nobody takes it any more."""
    stream.close()
    try:
        async with asyncio.timeout(TAKE_SECONDS):
            await stream.wait_closed()
    except (OSError, TimeoutError):
        stream.transport.abort()


def unix_ms() -> int:
    """Milliseconds since 1970, of the clock that the brokers read too."""
    return time.time_ns() // 1_000_000
