"""The sockets of a call: to addresses that were judged, within the call's time and sizes.

They are what `httpcore` reads from and writes to. Every step asks the deadline how much time is
left, so that bytes which trickle in cannot keep a call alive.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import httpcore
from typing_extensions import override

from console.base.outbound.addresses import Address
from console.base.outbound.deadlines import Deadline
from console.base.outbound.errors import (
    AnswerTooLarge,
    CallError,
    CertificateRefused,
    ConnectionFailed,
    TlsFailed,
)

Result = TypeVar("Result")

# A host's further addresses are not tried.
ADDRESSES_TRIED_MAX = 4
WRITE_BYTES = 16 * 1024
CONNECTING = "while it connected"
ENCRYPTING = "while it agreed on encryption"
SENDING = "while the host took the request"
WAITING = "while it waited for the rest of the answer"


class Allowance:
    """How many bytes may still be received, and what to say if there are more.

    `part` of the answer may have `size_max` bytes, for which a connection carries `left` at most.
    """

    def __init__(self, part: str, size_max: int) -> None:
        self.begin(part, size_max, size_max)

    def begin(self, part: str, size_max: int, left: int) -> None:
        """Begins to count for another part."""
        self._part = part
        self._size_max = size_max
        self.left = left

    def exceeded(self) -> AnswerTooLarge:
        """Returns the error for an answer that has more bytes."""
        return AnswerTooLarge(
            f"{self._part} is larger than {self._size_max} bytes. Have the host answer with less."
        )


class CallStream(httpcore.NetworkStream):
    """A connection that ends with the call's deadline and reads no more than the allowance."""

    def __init__(self, connection: socket.socket, deadline: Deadline, allowance: Allowance) -> None:
        self._connection = connection
        self._deadline = deadline
        self._allowance = allowance
        # Whether the host has closed its side.
        self.ended = False

    @override
    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._allowance.left <= 0:
            raise self._allowance.exceeded()
        size = min(max_bytes, self._allowance.left)
        content = self._step(WAITING, lambda: self._connection.recv(size))
        self._allowance.left -= len(content)
        self.ended = not content
        return content

    @override
    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        while rest:
            try:
                sent = self._step(SENDING, partial(self._send, rest[:WRITE_BYTES]))
            except ConnectionFailed as error:
                # A host may answer and close before it has taken all; the answer is read then.
                raise httpcore.WriteError(error.detail) from error
            rest = rest[sent:]

    @override
    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        self._connection = self._step(
            ENCRYPTING,
            lambda: ssl_context.wrap_socket(self._connection, server_hostname=server_hostname),
        )
        return self

    @override
    def close(self) -> None:
        self._connection.close()

    @override
    def get_extra_info(self, info: str) -> None:
        return None

    def _send(self, part: memoryview) -> int:
        return self._connection.send(part)

    def _step(self, doing: str, run: Callable[[], Result]) -> Result:
        """Runs one step on the socket within the time that is left. Raises `CallError`."""
        self._connection.settimeout(self._deadline.left_s(doing))
        try:
            return run()
        except TimeoutError as error:
            raise self._deadline.passed(doing) from error
        except OSError as error:
            raise _explain(error, doing) from error


class JudgedAddresses(httpcore.NetworkBackend):
    """Connects to the addresses that were judged, whatever the name in the request may mean now."""

    def __init__(
        self, addresses: Sequence[Address], deadline: Deadline, allowance: Allowance
    ) -> None:
        self._addresses = addresses[:ADDRESSES_TRIED_MAX]
        self._deadline = deadline
        self._allowance = allowance
        self._stream: CallStream | None = None

    @override
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> CallStream:
        failure: CallError = ConnectionFailed("There is no address to connect to.")
        for tried, address in enumerate(self._addresses):
            # One address that does not answer leaves time for the others.
            share_s = self._deadline.left_s(CONNECTING) / (len(self._addresses) - tried)
            try:
                connection = socket.create_connection((str(address), port), share_s)
            except TimeoutError:
                failure = self._deadline.passed(CONNECTING)
            except OSError as error:
                failure = _explain(error, CONNECTING)
            else:
                self._stream = CallStream(connection, self._deadline, self._allowance)
                return self._stream
        raise failure

    @property
    def ended(self) -> bool:
        """Whether there was a connection and the host closed it."""
        return self._stream is not None and self._stream.ended

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._stream is not None:
            self._stream.close()


def _explain(error: OSError, doing: str) -> CallError:
    """Returns what an error of the system means to the people who chose the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return CertificateRefused(
            f"The certificate of the host is refused: {error.verify_message}. Use one that a"
            " public authority signed for this name."
        )
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or "no reason").lower().replace("_", " ")
        return TlsFailed(f"TLS failed {doing}: {reason}. TLS 1.2 or newer is needed.")
    reason = (error.strerror or "no reason").lower()
    return ConnectionFailed(f"The connection failed {doing}: {reason}.")
