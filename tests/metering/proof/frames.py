"""Decodes the Kafka frames that the proof counts, from the message descriptions alone.

Own code, shared with nobody: `FetchResponse.json` (versions 4 to 18), `ProduceRequest.json` and
`ProduceResponse.json` (3 to 13), `SaslHandshakeRequest.json` (1), `SaslAuthenticateRequest.json`
(0 to 2), all of Apache Kafka 4.1. A frame that does not end where its fields end is an error, so
that a wrong decoder gives no figure at all.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

PRODUCE, FETCH, SASL_HANDSHAKE, SASL_AUTHENTICATE = 0, 1, 17, 36

FETCH_VERSIONS = range(4, 19)
PRODUCE_VERSIONS = range(3, 14)

FETCH_FLEXIBLE = 12
PRODUCE_FLEXIBLE = 9
AUTHENTICATE_FLEXIBLE = 2
TOPIC_IDS = 13
# The APIs whose requests may name who pays, with the first version whose header has a place for it,
# and the tag of that field, which no message of Kafka has.
PAID_SINCE = {PRODUCE: PRODUCE_FLEXIBLE, FETCH: FETCH_FLEXIBLE}
PAYER_TAG = 1 << 20

# A batch begins with its base offset and the length of what follows; its magic stands behind the
# leader epoch.
BATCH_HEAD = struct.Struct(">qi")
BATCH_MAGIC_AT = 16

Topic = str | uuid.UUID


class FrameError(Exception):
    """A frame is not what the descriptions say."""


@dataclass(frozen=True)
class RequestHead:
    """The fixed part of a request's header."""

    api: int
    version: int
    correlation: int

    @classmethod
    def of(cls, frame: bytes) -> RequestHead:
        """Reads a request's head. Raises `FrameError`."""
        if len(frame) < 8:
            message = f"a request of {len(frame)} bytes"
            raise FrameError(message)
        return cls(*struct.unpack_from(">hhi", frame))


@dataclass(frozen=True)
class Part:
    """A partition's share of a frame: the size of its record batches, or what became of them."""

    topic: Topic
    partition: int
    error_code: int
    size: int


class Fields:
    """Reads a frame field by field: compact forms and tagged fields where it is flexible."""

    def __init__(self, frame: bytes, *, flexible: bool) -> None:
        self.frame, self.at, self.flexible = frame, 0, flexible

    def number(self, form: str) -> int:
        """A number, big-endian, in the `struct` module's letter for its form."""
        size = struct.calcsize(">" + form)
        (value,) = struct.unpack(">" + form, self.raw(size))
        return int(value)

    def raw(self, size: int) -> bytes:
        """So many bytes."""
        if size < 0 or self.at + size > len(self.frame):
            message = f"{size} bytes at {self.at} of {len(self.frame)}"
            raise FrameError(message)
        self.at += size
        return self.frame[self.at - size : self.at]

    def varint(self) -> int:
        """An unsigned varint of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        message = f"no varint before {self.at}"
        raise FrameError(message)

    def length(self, form: str) -> int:
        """The length before a string, bytes or an array; -1 for null."""
        return self.varint() - 1 if self.flexible else self.number(form)

    def text(self) -> str | None:
        """A string or null."""
        size = self.length("h")
        return None if size < 0 else self.raw(size).decode()

    def data(self) -> bytes:
        """Bytes; null is none."""
        return self.raw(max(self.length("i"), 0))

    def items(self) -> Iterator[int]:
        """Once for each item of an array, which the caller reads before it asks for the next."""
        yield from range(max(self.length("i"), 0))

    def topic(self, version: int) -> Topic:
        """A topic's name, or its id where the version has ids."""
        if version >= TOPIC_IDS:
            return uuid.UUID(bytes=self.raw(16))
        return self.text() or ""

    def records(self) -> int:
        """Steps over whole record batches; gives their size. Raises where they are cut."""
        batches = self.data()
        at = 0
        while at < len(batches):
            if len(batches) - at <= BATCH_MAGIC_AT or batches[at + BATCH_MAGIC_AT] != 2:
                message = f"no record batch at {at} of {len(batches)}"
                raise FrameError(message)
            _, length = BATCH_HEAD.unpack_from(batches, at)
            if not 0 < length <= len(batches) - at - BATCH_HEAD.size:
                message = f"the batch at {at} of {len(batches)} is cut"
                raise FrameError(message)
            at += BATCH_HEAD.size + length
        return len(batches)

    def tags(self) -> None:
        """Steps over tagged fields."""
        if self.flexible:
            for _ in range(self.varint()):
                self.varint()
                self.raw(self.varint())

    def end(self) -> None:
        """Raises `FrameError` unless this is the end."""
        if self.at != len(self.frame):
            message = f"{len(self.frame) - self.at} bytes too many of {len(self.frame)}"
            raise FrameError(message)


def payer_of(frame: bytes, head: RequestHead) -> str | None:
    """The principal that a Produce or Fetch request names as who pays. Raises `FrameError`."""
    if head.api not in PAID_SINCE or head.version < PAID_SINCE[head.api]:
        return None
    fields = Fields(frame, flexible=False)
    fields.raw(8)
    fields.text()  # client id
    payer = None
    for _ in range(fields.varint()):
        tag, content = fields.varint(), fields.raw(fields.varint())
        payer = content.decode() if tag == PAYER_TAG else payer
    return payer


def request_fields(frame: bytes, *, flexible: bool) -> Fields:
    """What follows a request's header. The client's id is never compact."""
    fields = Fields(frame, flexible=False)
    fields.raw(8)
    fields.text()
    fields.flexible = flexible
    fields.tags()
    return fields


def response_fields(frame: bytes, *, flexible: bool) -> Fields:
    """What follows a response's header."""
    fields = Fields(frame, flexible=flexible)
    fields.raw(4)
    fields.tags()
    return fields


def parse_fetch_response(frame: bytes, version: int) -> list[Part]:
    """The partitions of a Fetch response. Raises `FrameError`."""
    check_version(version, FETCH_VERSIONS, "Fetch")
    fields = response_fields(frame, flexible=version >= FETCH_FLEXIBLE)
    fields.number("i")
    if version >= 7:
        fields.raw(2 + 4)  # the request's error, the session
    parts = []
    for _ in fields.items():
        topic = fields.topic(version)
        parts += [fetched_partition(fields, topic, version) for _ in fields.items()]
        fields.tags()
    fields.tags()
    fields.end()
    return parts


def fetched_partition(fields: Fields, topic: Topic, version: int) -> Part:
    """A partition of a Fetch response."""
    partition, error_code = fields.number("i"), fields.number("h")
    fields.raw(8 + 8)  # high watermark, last stable offset
    if version >= 5:
        fields.raw(8)  # log start
    for _ in fields.items():  # aborted transactions
        fields.raw(8 + 8)
        fields.tags()
    if version >= 11:
        fields.raw(4)  # preferred read replica
    size = fields.records()
    fields.tags()
    return Part(topic, partition, error_code, size)


def parse_produce_request(frame: bytes, version: int) -> tuple[int, list[Part]]:
    """Which acks a Produce request asks for, and its partitions. Raises `FrameError`."""
    check_version(version, PRODUCE_VERSIONS, "Produce")
    fields = request_fields(frame, flexible=version >= PRODUCE_FLEXIBLE)
    fields.text()  # transactional id
    acks = fields.number("h")
    fields.raw(4)  # timeout
    parts = []
    for _ in fields.items():
        topic = fields.topic(version)
        for _ in fields.items():
            partition = fields.number("i")
            parts.append(Part(topic, partition, 0, fields.records()))
            fields.tags()
        fields.tags()
    fields.tags()
    fields.end()
    return acks, parts


def parse_produce_response(frame: bytes, version: int) -> list[Part]:
    """The partitions of a Produce response, of size 0. Raises `FrameError`."""
    check_version(version, PRODUCE_VERSIONS, "Produce")
    fields = response_fields(frame, flexible=version >= PRODUCE_FLEXIBLE)
    parts = []
    for _ in fields.items():
        topic = fields.topic(version)
        for _ in fields.items():
            partition, error_code = fields.number("i"), fields.number("h")
            fields.raw(8 + 8)  # base offset, time of the append
            if version >= 5:
                fields.raw(8)  # log start
            if version >= 8:
                for _ in fields.items():  # errors of single records
                    fields.raw(4)
                    fields.text()
                    fields.tags()
                fields.text()
            fields.tags()
            parts.append(Part(topic, partition, error_code, 0))
        fields.tags()
    fields.raw(4)  # throttle time
    fields.tags()
    fields.end()
    return parts


def parse_mechanism(frame: bytes, version: int) -> str:
    """What a SaslHandshake asks for. Version 0 is refused: what follows it are no Kafka frames."""
    check_version(version, range(1, 2), "SaslHandshake")
    return request_fields(frame, flexible=False).text() or ""


def user_name(frame: bytes, version: int, mechanism: str) -> str | None:
    """The user that a SaslAuthenticate names; None where it is not the exchange's first.

    RFC 4616 for PLAIN, RFC 5802 for SCRAM.
    """
    check_version(version, range(3), "SaslAuthenticate")
    fields = request_fields(frame, flexible=version >= AUTHENTICATE_FLEXIBLE)
    token = fields.data().decode()
    if mechanism == "PLAIN":
        return token.split("\0")[1]
    named = token.split(",")
    if named[0] != "n":
        return None
    return named[2].removeprefix("n=").replace("=2C", ",").replace("=3D", "=")


def check_version(version: int, versions: range, api: str) -> None:
    """Raises `FrameError` for a version that this decoder does not know."""
    if version not in versions:
        message = f"{api} {version}"
        raise FrameError(message)
