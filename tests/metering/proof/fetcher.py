"""Reads a topic over Kafka as bytes: Fetch requests built by hand, one partition at a time.

It measures the size of a partition's log as a client gets it: a second measurement beside the scan
of the storage, which does not depend on any stored format.
"""

from __future__ import annotations

import socket
import struct
import uuid
from types import TracebackType
from typing import Self

from tests.metering.proof import frames

TIMEOUT_SECONDS = 60.0
FETCH_BYTES = 1 << 20
MAX_WAIT_MS = 100
CLIENT = b"weigher"


class FetchError(Exception):
    """A partition answered with an error."""


class Fetcher:
    """One connection without authentication. `with` opens it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        self._correlation = 0

    def weigh(self, topic: frames.Topic, partition: int, end: int, version: int) -> int:
        """Bytes of the record batches from offset 0 up to `end`, fetched with this version."""
        offset = weight = 0
        while offset < end:
            batches = self.fetch(topic, partition, offset, version)
            weight += len(batches)
            offset = next_offset(batches)
        return weight

    def fetch(self, topic: frames.Topic, partition: int, offset: int, version: int) -> bytes:
        """Record batches of a partition from this offset on. Raises `FetchError`."""
        answer = self._ask(fetch_request(topic, partition, offset, version), version)
        (part,) = frames.parse_fetch_response(answer, version)
        if part.error_code:
            message = f"{topic}-{partition}: error {part.error_code}"
            raise FetchError(message)
        return records_of(answer, part.size, version)

    def _ask(self, body: bytes, version: int) -> bytes:
        self._correlation += 1
        head = struct.pack(">hhih", frames.FETCH, version, self._correlation, len(CLIENT)) + CLIENT
        tags = b"\0" if version >= frames.FETCH_FLEXIBLE else b""
        frame = head + tags + body
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                message = "the connection ended"
                raise FetchError(message)
            data += more
        return data

    def __enter__(self) -> Self:
        """It is open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        self._socket.close()


def fetch_request(topic: frames.Topic, partition: int, offset: int, version: int) -> bytes:
    """A Fetch request's body for one partition, by `FetchRequest.json`; always a full fetch."""
    flexible = version >= frames.FETCH_FLEXIBLE
    tags = b"\0" if flexible else b""
    one, none = (b"\2", b"\1") if flexible else (struct.pack(">i", 1), struct.pack(">i", 0))
    body = b"" if version >= 15 else struct.pack(">i", -1)  # replica
    body += struct.pack(">iiib", MAX_WAIT_MS, 1, FETCH_BYTES, 0)
    if version >= 7:
        body += struct.pack(">ii", 0, -1)  # no session
    body += one
    if isinstance(topic, uuid.UUID):
        body += topic.bytes
    else:
        name = topic.encode()
        body += bytes([len(name) + 1]) if flexible else struct.pack(">h", len(name))
        body += name
    body += one + struct.pack(">i", partition)
    if version >= 9:
        body += struct.pack(">i", -1)  # leader epoch
    body += struct.pack(">q", offset)
    if version >= 12:
        body += struct.pack(">i", -1)  # epoch of the last record
    if version >= 5:
        body += struct.pack(">q", -1)  # the replica's log start
    body += struct.pack(">i", FETCH_BYTES) + tags + tags
    if version >= 7:
        body += none  # nothing forgotten
    if version >= 11:
        body += b"\1" if flexible else struct.pack(">h", 0)  # rack
    return body + tags


def records_of(answer: bytes, size: int, version: int) -> bytes:
    """The batches of an answer with one partition: they end it, but for empty tagged fields."""
    tail = 3 if version >= frames.FETCH_FLEXIBLE else 0
    end = len(answer) - tail
    return answer[end - size : end]


def next_offset(batches: bytes) -> int:
    """The offset after the last of these batches. Raises `FetchError` where there is none."""
    at = following = -1
    position = 0
    while position < len(batches):
        base, length = frames.BATCH_HEAD.unpack_from(batches, position)
        (delta,) = struct.unpack_from(">i", batches, position + 23)
        at, following = base, base + delta + 1
        position += frames.BATCH_HEAD.size + length
    if at < 0:
        message = "nothing was fetched where records are due"
        raise FetchError(message)
    return int(following)
