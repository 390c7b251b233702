"""Kafka's protocol on a socket: whatever a test asks is written and read by the schemas."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from tests.protocol.codec import Body, Codec, write_message
from tests.protocol.schemas import Api

# Never reached when all is well.
LIMIT_S = 60.0
CLIENT_ID = "protocol-test"


class ClosedError(Exception):
    """The other end closed the connection instead of answering."""


class Connection:
    """One connection to a broker. `address` is `host:port`."""

    def __init__(self, address: str, codec: Codec) -> None:
        host, _, port = address.rpartition(":")
        self.codec = codec
        self.socket = socket.create_connection((host, int(port)), LIMIT_S)
        # Since an answer did not come, or was wrong: whatever is read next may belong to anything.
        self.has_failed = False
        self._correlation_id = 0

    def ask(self, name: str, version: int, body: Body) -> dict[str, Any]:
        """The answer to a request. Raises `ClosedError`, and `MalformedError` for a wrong one."""
        api = self.codec.schemas.named(name)
        self.send(api, version, body)
        self.has_failed = True
        answer = self.answer(api, version)
        self.has_failed = False
        return answer

    def send(self, api: Api, version: int, body: Body) -> None:
        """Sends a request."""
        self._correlation_id += 1
        frame = self.codec.request(
            api, version, body, correlation_id=self._correlation_id, client_id=CLIENT_ID
        )
        self.send_frame(frame)

    def answer(self, api: Api, version: int) -> dict[str, Any]:
        """The answer to the request that was sent last.

        Written again it must be the bytes that came: a check of the codec as much as of the answer.
        """
        frame = self.receive_frame()
        answer = self.codec.answer(api, version, frame, self._correlation_id)
        assert frame.endswith(write_message(api.response, version, answer))
        return answer

    def send_frame(self, frame: bytes) -> None:
        """Sends bytes behind their length."""
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        """The next frame, without its length. Raises `ClosedError`."""
        (length,) = struct.unpack(">i", self._receive(4))
        return self._receive(length)

    def _receive(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            try:
                piece = self.socket.recv(length - len(received))
            except ConnectionResetError as error:
                raise ClosedError from error
            if not piece:
                raise ClosedError
            received += piece
        return bytes(received)

    def log_in(self, user: str, password: str) -> None:
        """Authenticates with PLAIN."""
        answer = self.ask("SaslHandshake", 1, {"Mechanism": "PLAIN"})
        assert answer["ErrorCode"] == 0, answer
        token = f"\0{user}\0{password}".encode()
        answer = self.ask("SaslAuthenticate", 2, {"AuthBytes": token})
        assert answer["ErrorCode"] == 0, answer

    def close(self) -> None:
        """Leaves."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leaves."""
        self.close()
