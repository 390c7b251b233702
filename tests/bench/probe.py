"""The first served requests, on a bare socket: no client library's retries come in between.

librdkafka waits 3 s before it asks for leaders again where its first question goes to a bootstrap
broker of which it just learned the id: after about one start in ten.

Formats: https://kafka.apache.org/protocol.html (request header v1, ApiVersions v0, Metadata v1,
ListOffsets v1).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping

LIST_OFFSETS = 2
METADATA = 3
API_VERSIONS = 18
LATEST = -1
NO_REPLICA = -1
RETRY_SECONDS = 0.001
REPLY_SECONDS = 5.0
FRAME_MAX = 1 << 20
# Kafka looks through all of 10,000 partitions after a kill.
START_SECONDS_MAX = 900.0


class NotServedError(Exception):
    """The broker took the connection but did not answer as a broker does."""


def wait_until_served(
    server: subprocess.Popen[bytes], port: int, *, since: float, limit: float = START_SECONDS_MAX
) -> tuple[float, float]:
    """Asks again and again until a broker answers.

    Returns the seconds from `since` (a reading of `time.monotonic`) to the answers to ApiVersions
    and to Metadata. Raises `RuntimeError` if the process ends or `limit` seconds pass.
    """
    while time.monotonic() - since < limit:
        with contextlib.suppress(OSError, NotServedError):
            return _ask_broker(port, since)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(RETRY_SECONDS)
            break
    message = f"no broker on port {port}: exit status {server.returncode}"
    raise RuntimeError(message)


def _ask_broker(port: int, since: float) -> tuple[float, float]:
    with socket.create_connection(("127.0.0.1", port), REPLY_SECONDS) as connection:
        (error,) = struct.unpack_from(">h", call_api(connection, API_VERSIONS, 0, b""))
        versions_after = time.monotonic() - since
        # A null array asks for all topics; the answer begins with the brokers.
        (brokers,) = struct.unpack_from(
            ">i", call_api(connection, METADATA, 1, b"\xff\xff\xff\xff")
        )
        metadata_after = time.monotonic() - since
    if error != 0 or brokers < 1:
        raise NotServedError
    return versions_after, metadata_after


def partitions_with_end(address: str, topics: Mapping[str, int]) -> set[tuple[str, int]]:
    """The partitions whose end the broker at `host:port` reports: those that it leads and has open.

    `topics` have so many partitions each. Raises `OSError` or `NotServedError` where it does not
    answer.
    """
    body = struct.pack(">ii", NO_REPLICA, len(topics))
    for topic, partitions in topics.items():
        name = topic.encode()
        body += struct.pack(">h", len(name)) + name + struct.pack(">i", partitions)
        body += b"".join(struct.pack(">iq", partition, LATEST) for partition in range(partitions))
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), REPLY_SECONDS) as connection:
        return set(_without_error(call_api(connection, LIST_OFFSETS, 1, body)))


def _without_error(answer: bytes) -> Iterator[tuple[str, int]]:
    (topics,) = struct.unpack_from(">i", answer)
    at = 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        topic = answer[at + 2 : at + 2 + length].decode()
        (partitions,) = struct.unpack_from(">i", answer, at + 2 + length)
        at += 2 + length + 4
        for _ in range(partitions):
            partition, error, _, _ = struct.unpack_from(">ihqq", answer, at)
            at += 22
            if error == 0:
                yield topic, partition


def call_api(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Sends a request and returns its answer's body.

    Raises `NotServedError` if the broker closes the connection or answers something else.
    """
    header = struct.pack(">hhih", api, version, api, -1)
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _receive_bytes(connection, 4))
    if not 4 <= size <= FRAME_MAX:
        raise NotServedError
    answer = _receive_bytes(connection, size)
    if struct.unpack_from(">i", answer) != (api,):
        raise NotServedError
    return answer[4:]


def _receive_bytes(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise NotServedError
        received += piece
    return received
