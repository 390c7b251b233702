"""Kafka's protocol on a bare socket, and the gateway's metrics."""

from __future__ import annotations

import socket
import ssl
import struct
import urllib.request
import weakref
from pathlib import Path

HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
LIMIT_S = 60.0


class Refused(Exception):
    """The gateway refused the client; the text is its reason."""


class Raw:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.client_id = b"t"
        # Closed with it, at the latest.
        weakref.finalize(self, sock.close)

    @classmethod
    def plain(cls, port: int, source: str | None = None) -> Raw:
        """A connection without TLS, from an address of the loopback."""
        bound = None if source is None else (source, 0)
        return cls(socket.create_connection(("127.0.0.1", port), LIMIT_S, bound))

    @classmethod
    def tls(cls, port: int, name: str | None, authority: Path) -> Raw:
        """A connection with TLS that asks for a name."""
        context = ssl.create_default_context(cafile=str(authority))
        context.check_hostname = name is not None
        raw = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        return cls(context.wrap_socket(raw, server_hostname=name))

    def send(self, api: int, version: int, body: bytes) -> None:
        """Sends a request with a header of version 1."""
        head = struct.pack(">hhih", api, version, 1, len(self.client_id)) + self.client_id
        frame = head + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        """The body of the next answer; empty where the connection ended."""
        prefix = self._exactly(4)
        if not prefix:
            return b""
        return self._exactly(struct.unpack(">i", prefix)[0])[4:]

    def _exactly(self, length: int) -> bytes:
        received = b""
        while len(received) < length:
            try:
                piece = self.socket.recv(length - len(received))
            except ConnectionResetError:
                return b""
            if not piece:
                return b""
            received += piece
        return received

    def rest(self) -> bytes:
        """All that the other end still sends, until it closes."""
        received = b""
        while piece := self._exactly(1):
            received += piece
        return received

    def log_in(self, user: str, password: str) -> None:
        """Authenticates with PLAIN. Raises `Refused`, or `ConnectionError` where it is closed."""
        mechanism = b"PLAIN"
        self.send(HANDSHAKE, 1, struct.pack(">h", len(mechanism)) + mechanism)
        answer = self.receive()
        if not answer:
            raise ConnectionError
        assert answer[:2] == b"\0\0"
        token = f"\0{user}\0{password}".encode()
        self.send(AUTHENTICATE, 1, struct.pack(">i", len(token)) + token)
        answer = self.receive()
        if not answer:
            raise ConnectionError
        code, length = struct.unpack(">hh", answer[:4])
        if code != 0:
            raise Refused(answer[4 : 4 + length].decode())

    def metadata(self) -> bytes:
        """The answer to a Metadata request for no topic."""
        self.send(METADATA, 1, struct.pack(">i", 0))
        return self.receive()

    def is_closed(self) -> bool:
        """Waits until the other end closes; returns whether it sent nothing before that."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Leaves."""
        self.socket.close()


def metrics(address: str) -> dict[str, float]:
    """All metrics by name and labels."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_S) as answer:
        lines = answer.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def metric(address: str, name: str) -> float:
    """One metric; 0 where it is not there."""
    return metrics(address).get(name, 0.0)
