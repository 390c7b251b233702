"""The first served request, on a bare socket: no client library's retries come in between.

Formats: https://kafka.apache.org/protocol.html (request header v1, ApiVersions v0, Metadata v1).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time

API_VERSIONS = 18
METADATA = 3
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
            return _ask(port, since)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(RETRY_SECONDS)
            break
    message = f"no broker on port {port}: exit status {server.returncode}"
    raise RuntimeError(message)


def _ask(port: int, since: float) -> tuple[float, float]:
    with socket.create_connection(("127.0.0.1", port), REPLY_SECONDS) as connection:
        (error,) = struct.unpack_from(">h", _call(connection, API_VERSIONS, 0, b""))
        versions_after = time.monotonic() - since
        # A null array asks for all topics; the answer begins with the brokers.
        (brokers,) = struct.unpack_from(">i", _call(connection, METADATA, 1, b"\xff\xff\xff\xff"))
        metadata_after = time.monotonic() - since
    if error != 0 or brokers < 1:
        raise NotServedError
    return versions_after, metadata_after


def _call(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Sends a request and returns its answer's body."""
    header = struct.pack(">hhih", api, version, api, -1)
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    if not 4 <= size <= FRAME_MAX:
        raise NotServedError
    answer = _receive(connection, size)
    if struct.unpack_from(">i", answer) != (api,):
        raise NotServedError
    return answer[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise NotServedError
        received += piece
    return received
