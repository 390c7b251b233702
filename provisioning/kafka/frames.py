"""What a worker and whoever asks it send each other over a stream socket.

A frame is its length (4 bytes, big-endian) and so many bytes. A request is pickled: whoever asks
is trusted. An answer is JSON, because a worker has read bytes of a tenant, and nothing that those
may have made of it shall be more than a wrong answer.
"""

from __future__ import annotations

import pickle
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

import orjson

from provisioning.kafka.connection import Connection

# A page of 500 records of which 64 KiB are shown, in base64 and as text.
FRAME_BYTES_MAX = 128 * 1024 * 1024
RECEIVE_BYTES = 1024 * 1024
LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Request:
    """A call of a function that the worker knows by `name`.

    Every answer of it shall be there within `limit_s` seconds of the one before.
    """

    connection: Connection
    name: str
    arguments: tuple[object, ...]
    options: dict[str, object]
    limit_s: float


def send_request(to: socket.socket, request: Request) -> None:
    """Sends a request. Raises `OSError`, and `TimeoutError` by the socket's time limit."""
    _send(to, pickle.dumps(request))


def receive_request(source: socket.socket) -> Request | None:
    """The next request; None where none will come."""
    content = _receive(source)
    # Only the service itself holds the other end.
    return None if content is None else pickle.loads(content)  # noqa: S301


class TooLargeError(ValueError):
    """A frame has more bytes than may be sent."""


def send_answer(to: socket.socket, **answer: object) -> None:
    """Sends an answer. Raises `TooLargeError` before the first byte, and `OSError`."""
    _send(to, orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS))


def receive_answer(source: socket.socket, limit_s: float | None = None) -> dict[str, Any] | None:
    """The next answer; None where none will come.

    Raises `ValueError` for what is no answer, `OSError`, and `TimeoutError` where it is not whole
    within `limit_s` seconds.
    """
    content = _receive(source, None if limit_s is None else time.monotonic() + limit_s)
    if content is None:
        return None
    answer = orjson.loads(content)
    if not isinstance(answer, dict):
        message = "an answer is a JSON object"
        raise ValueError(message)
    return answer


def _send(to: socket.socket, content: bytes) -> None:
    if len(content) > FRAME_BYTES_MAX:
        message = f"a frame has at most {FRAME_BYTES_MAX} bytes, not {len(content)}"
        raise TooLargeError(message)
    to.sendall(LENGTH.pack(len(content)) + content)


def _receive(source: socket.socket, deadline: float | None = None) -> bytearray | None:
    """The content of a frame; None where the stream ended before or within it."""
    head = _read(source, LENGTH.size, deadline)
    if head is None:
        return None
    (length,) = LENGTH.unpack(head)
    if length > FRAME_BYTES_MAX:
        message = f"a frame has at most {FRAME_BYTES_MAX} bytes, not {length}"
        raise ValueError(message)
    return _read(source, length, deadline)


def _read(source: socket.socket, length: int, deadline: float | None) -> bytearray | None:
    # Memory is taken for what arrived, not for what was announced.
    content = bytearray()
    while len(content) < length:
        if deadline is not None:
            # With nothing left, one more look at what is there already.
            source.settimeout(max(deadline - time.monotonic(), 0.001))
        part = source.recv(min(length - len(content), RECEIVE_BYTES))
        if not part:
            return None
        content += part
    return content
