"""The frames that a worker and its caller send each other over a stream socket.

A frame is its length (4 bytes, big-endian) followed by so many bytes. A request is pickled, because
the caller is trusted. An answer is JSON: a worker has read bytes of a tenant, which may have taken
it over, and it must not be able to send more than a wrong answer.
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

# Enough for a page of 500 records of which 64 KiB each are shown, in base64 and as text.
FRAME_BYTES_MAX = 128 * 1024 * 1024
RECEIVE_BYTES = 1024 * 1024
LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Request:
    """A call of the worker's function `name`.

    Each of its answers must arrive within `limit_s` seconds of the one before.
    """

    connection: Connection
    name: str
    arguments: tuple[object, ...]
    options: dict[str, object]
    limit_s: float


def send_request(to: socket.socket, request: Request) -> None:
    """Sends a request. Raises `OSError`, and `TimeoutError` after the socket's time limit."""
    _send_frame(to, pickle.dumps(request))


def receive_request(source: socket.socket) -> Request | None:
    """Receives the next request; None where the caller closed the socket."""
    content = _receive_frame(source)
    # Unpickling is safe: only the service itself holds the other end.
    return None if content is None else pickle.loads(content)  # noqa: S301


class TooLargeError(ValueError):
    """The frame is longer than `FRAME_BYTES_MAX`."""


def send_answer(to: socket.socket, **answer: object) -> None:
    """Sends an answer. Raises `TooLargeError` before it sends anything, and `OSError`."""
    _send_frame(to, orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS))


def receive_answer(source: socket.socket, limit_s: float | None = None) -> dict[str, Any] | None:
    """Receives the next answer; None where the worker closed the socket.

    Raises `ValueError` where it is not a JSON object, `OSError`, and `TimeoutError` where it is not
    complete within `limit_s` seconds.
    """
    content = _receive_frame(source, None if limit_s is None else time.monotonic() + limit_s)
    if content is None:
        return None
    answer = orjson.loads(content)
    if not isinstance(answer, dict):
        message = "an answer is a JSON object"
        raise ValueError(message)
    return answer


def _send_frame(to: socket.socket, content: bytes) -> None:
    if len(content) > FRAME_BYTES_MAX:
        message = f"a frame has at most {FRAME_BYTES_MAX} bytes, not {len(content)}"
        raise TooLargeError(message)
    to.sendall(LENGTH.pack(len(content)) + content)


def _receive_frame(source: socket.socket, deadline: float | None = None) -> bytearray | None:
    """The content of a frame; None where the stream ended before or within it."""
    head = _receive_bytes(source, LENGTH.size, deadline)
    if head is None:
        return None
    (length,) = LENGTH.unpack(head)
    if length > FRAME_BYTES_MAX:
        message = f"a frame has at most {FRAME_BYTES_MAX} bytes, not {length}"
        raise ValueError(message)
    return _receive_bytes(source, length, deadline)


def _receive_bytes(source: socket.socket, length: int, deadline: float | None) -> bytearray | None:
    # Memory is allocated for what has arrived, not for the announced length.
    content = bytearray()
    while len(content) < length:
        if deadline is not None:
            # At the deadline bytes that have already arrived are still read.
            source.settimeout(max(deadline - time.monotonic(), 0.001))
        part = source.recv(min(length - len(content), RECEIVE_BYTES))
        if not part:
            return None
        content += part
    return content
