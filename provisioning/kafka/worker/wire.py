"""A connection to a broker for what librdkafka does not tell: the bytes of a batch's header.

It authenticates and fetches, by Kafka's protocol, and decodes nothing of what records hold.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass

from confluent_kafka import KafkaError

from provisioning.kafka.connection import CLIENT_ID, Connection
from provisioning.kafka.errors import UnavailableError, UndecodableError
from provisioning.kafka.worker.errors import error_of

FETCH, HANDSHAKE, AUTHENTICATE = 1, 17, 36
FETCH_VERSION, HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 4, 1, 0
# How much of an answer is read. A batch may be much larger; its header stands at its beginning.
ANSWER_BYTES_MAX = 256 * 1024
# What a fetch asks for. Of a larger batch the broker sends all, which is not read.
FETCH_BYTES = 64 * 1024
# How long a broker waits at the end of a partition, or for its storage.
WAIT_MS = 250
DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_AUTHENTICATED = struct.Struct(">hh")
# Partition, error, high watermark, last stable offset, count of aborted transactions.
_FETCHED = struct.Struct(">ihqqi")
ABORTED_BYTES = 16


@dataclass(frozen=True)
class Fetched:
    """The beginning of what a partition holds from an offset on.

    `end`: the offset of its next new record. `batches` may end anywhere, and may be empty where the
    broker had to read its storage for too long.
    """

    end: int
    batches: bytes


class Wire:
    """One authenticated connection. All of its calls end by `deadline` (of `time.monotonic`)."""

    def __init__(self, connection: Connection, address: tuple[str, int], deadline: float) -> None:
        """Connects and logs in. Raises `UnavailableError`."""
        self._deadline = deadline
        try:
            self._socket = socket.create_connection(address, self._left_s())
            try:
                self._log_in(connection)
            except BaseException:
                self.close()
                raise
        except OSError as error:
            raise UnavailableError("_TRANSPORT", str(error)) from error

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def fetch(self, topic: str, partition: int, offset: int) -> Fetched:
        """Fetches the first part of what a partition holds from an offset on.

        An answer with batches may be longer than what is read of it, so no call follows on one.
        Raises `UnavailableError`, `RefusedError` and `UndecodableError`.
        """
        place = struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES)
        limits = struct.pack(">iiiib", -1, WAIT_MS, 1, FETCH_BYTES, 0)
        try:
            answer = self._call(
                FETCH, FETCH_VERSION, limits + struct.pack(">i", 1) + _text(topic) + place
            )
            return _fetched(answer, topic)
        except OSError as error:
            raise UnavailableError("_TRANSPORT", str(error)) from error
        except struct.error as error:
            raise UndecodableError("_BAD_MSG", "the broker's answer is cut off") from error

    def _log_in(self, connection: Connection) -> None:
        answer = self._call(HANDSHAKE, HANDSHAKE_VERSION, _text(connection.mechanism))
        _check_error(struct.unpack_from(">h", answer)[0], "")
        if connection.mechanism == "PLAIN":
            self._authenticate(f"\0{connection.username}\0{connection.password}".encode())
            return
        scram = _Scram(connection)
        final = scram.answer(self._authenticate(scram.first()))
        scram.check(self._authenticate(final))

    def _authenticate(self, token: bytes) -> bytes:
        """Sends a token of the SASL exchange. Returns the broker's."""
        answer = self._call(AUTHENTICATE, AUTHENTICATE_VERSION, _bytes(token))
        code, length = _AUTHENTICATED.unpack_from(answer)
        at = _AUTHENTICATED.size + max(length, 0)
        _check_error(code, answer[_AUTHENTICATED.size : at].decode(errors="replace"))
        (length,) = struct.unpack_from(">i", answer, at)
        return answer[at + 4 : at + 4 + max(length, 0)]

    def _call(self, api: int, version: int, body: bytes) -> bytes:
        """Sends a request. Returns the answer's body, or what is read of it."""
        frame = struct.pack(">hhi", api, version, 0) + _text(CLIENT_ID) + body
        self._socket.settimeout(self._left_s())
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (length,) = struct.unpack(">i", self._receive(4))
        return self._receive(min(max(length, 4), ANSWER_BYTES_MAX))[4:]

    def _receive(self, length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            self._socket.settimeout(self._left_s())
            part = self._socket.recv(length - len(received))
            if not part:
                message = "the broker closed the connection"
                raise ConnectionResetError(message)
            received += part
        return bytes(received)

    def _left_s(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left


class _Scram:
    """The client's side of SCRAM (RFC 5802), without channel binding."""

    def __init__(self, connection: Connection) -> None:
        self._digest = DIGESTS[connection.mechanism]
        self._password = connection.password.encode()
        name = connection.username.replace("=", "=3D").replace(",", "=2C")
        self._nonce = secrets.token_urlsafe(24)
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes:
        text = challenge.decode()
        fields = dict(field.split("=", 1) for field in text.split(","))
        if not fields["r"].startswith(self._nonce):
            raise UnavailableError("_AUTHENTICATION", "the broker's nonce is not ours")
        salted = hashlib.pbkdf2_hmac(
            self._digest, self._password, base64.b64decode(fields["s"]), int(fields["i"])
        )
        client_key = self._mac(salted, b"Client Key")
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        client_signature = self._mac(hashlib.new(self._digest, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        self._signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, verdict: bytes) -> None:
        expected = b"v=" + base64.b64encode(self._signature)
        if not hmac.compare_digest(verdict, expected):
            raise UnavailableError("_AUTHENTICATION", "the broker does not know the password")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._digest)


def _fetched(answer: bytes, topic: str) -> Fetched:
    # Throttle time, one topic with its name, one partition.
    at = 4 + 4 + len(_text(topic)) + 4
    _, error, end, _, aborted = _FETCHED.unpack_from(answer, at)
    _check_error(error, "")
    at += _FETCHED.size + max(aborted, 0) * ABORTED_BYTES
    (length,) = struct.unpack_from(">i", answer, at)
    return Fetched(end, answer[at + 4 : at + 4 + max(length, 0)])


def _check_error(code: int, detail: str) -> None:
    if code:
        raise error_of(KafkaError(code, detail or None))


def _text(content: str) -> bytes:
    encoded = content.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _bytes(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
