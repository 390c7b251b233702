"""Reads a broker's status over HTTP, on loopback or inside the cell."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from provisioning.cell.status.groups import GroupTable
from provisioning.cell.status.picture import Picture

# An answer of a broker has 256 KiB of entries, and at least one, of which none is large.
ANSWER_BYTES_MAX = 1024 * 1024
# How many answers in a row are read at a time: as many as all that a broker may have takes.
ANSWERS_MAX = 64
# How often brokers are asked again for times of records, which they look up in the background.
TIMES_READS = 3
TIMES_PAUSE_S = 0.25
# What goes wrong with a connection.
UNANSWERED = (OSError, EOFError, asyncio.LimitOverrunError)


class StatusReader:
    """Reads the status of one broker, over a connection that it keeps.

    `picture` is what the broker said; a new one begins where an answer cannot be used. One that is
    given is read on.
    """

    def __init__(self, address: str, slot: int = 0, *, picture: Picture | None = None) -> None:
        self.picture = picture or Picture(slot)
        # The bytes that were sent and received.
        self.bytes_moved = 0
        self._address = address
        self._streams: tuple[StreamReader, StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self._ended = False

    async def read(self, *, timeout_s: float) -> bool:
        """Reads what changed. Returns whether a valid answer came in time."""
        try:
            async with asyncio.timeout(timeout_s), self._turn:
                await self._read_all()
        except ValueError:
            self.picture = self.picture.empty()
            return False
        except UNANSWERED:
            return False
        return True

    def close(self) -> None:
        """Closes the connection. Reads that are under way, or come later, fail."""
        self._ended = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _read_all(self) -> None:
        read = False
        try:
            for _ in range(ANSWERS_MAX):
                if not self.picture.take(await self._ask()):
                    break
            read = True
        finally:
            if not read or self._ended:
                # What is left of an answer must not be taken for the next one.
                self._disconnect()

    async def _ask(self) -> bytes:
        kept = self._streams
        if kept is not None and not kept[0].at_eof():
            try:
                return await self._converse(*kept)
            except (OSError, EOFError):
                # A broker ends connections after a while, which may be now.
                pass
        self._disconnect()
        if self._ended:
            message = "the reader is closed"
            raise EOFError(message)
        host, _, port = self._address.rpartition(":")
        self._streams = await asyncio.open_connection(host.strip("[]"), int(port))
        return await self._converse(*self._streams)

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> bytes:
        request = (
            f"GET /status{self.picture.query} HTTP/1.1\r\nhost: {self._address}\r\n\r\n".encode()
        )
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status, *lines = head.lower().split(b"\r\n")
        headers = dict(line.split(b":", 1) for line in lines if b":" in line)
        length = int(headers.get(b"content-length", b"-1"))
        if status.split(b" ")[1:2] != [b"200"] or not 0 <= length <= ANSWER_BYTES_MAX:
            message = "the answer is not a status"
            raise ValueError(message)
        answer = await reader.readexactly(length)
        self.bytes_moved += len(request) + len(head) + length
        return answer


async def read_status(address: str, *, timeout_s: float) -> Picture | None:
    """What a broker at `host:port` says; None where no valid answer came in time."""
    reader = StatusReader(address)
    try:
        answered = await reader.read(timeout_s=timeout_s)
    finally:
        reader.close()
    return reader.picture if answered else None


async def read_on(pictures: Mapping[str, Picture], *, timeout_s: float) -> bool:
    """Has pictures take what has changed, each from its broker's address, all at once.

    Returns whether a valid answer of each came in time; else none of them is to be used any more.
    """
    readers = [StatusReader(address, picture=picture) for address, picture in pictures.items()]

    async def read() -> bool:
        return all(await asyncio.gather(*(reader.read(timeout_s=timeout_s) for reader in readers)))

    try:
        if not await read():
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                return await read_times(list(pictures.values()), read)
        return True
    finally:
        for reader in readers:
            reader.close()


async def read_times(pictures: Sequence[Picture], read: Callable[[], Awaitable[bool]]) -> bool:
    """Has `read` read on until brokers have said what only they know of others' groups.

    It reads a few times at most. Returns whether each reading was answered.
    """
    for _ in range(TIMES_READS if len(pictures) > 1 else 0):
        if not GroupTable(pictures).want_times():
            break
        await asyncio.sleep(TIMES_PAUSE_S)
        if not await read():
            return False
    return True
