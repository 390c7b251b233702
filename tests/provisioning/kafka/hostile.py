"""Requests that a tenant's client may send but no library does, such as bytes instead of text."""

from __future__ import annotations

import struct

from kafka.record.default_records import DefaultRecordBatchBuilder

from tests.gateway.raw import Raw

PRODUCE, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 0, 10, 11, 14
NOT_COORDINATOR = 16
# The first version that permits zstd.
PRODUCE_VERSION = 7
BATCH_BYTES_MAX = 65_536
SESSION_MS = 300_000
NOT_UTF8 = b"\xff\xfe"


class RawName(str):
    """A header's name that is encoded to bytes which are not UTF-8."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        """Returns bytes that are not UTF-8."""
        return NOT_UTF8


def log_in(bootstrap: str, user: str, password: str) -> Raw:
    """Opens a connection and authenticates."""
    raw = Raw.plain(int(bootstrap.rpartition(":")[2]))
    raw.log_in(user, password)
    return raw


def join_alone(raw: Raw, group: str, assignment: bytes, *, protocol_type: str = "consumer") -> None:
    """Makes the connection the only member of a group, with an assignment of these bytes.

    The group is stable afterwards, for five minutes without a heartbeat.
    """
    name = _text(group)
    protocol = struct.pack(">i", 1) + _text("range") + _bytes(b"")
    times = struct.pack(">ii", SESSION_MS, SESSION_MS)
    error = NOT_COORDINATOR
    while error == NOT_COORDINATOR:
        # A broker takes over its groups when one is first requested, so this may have to be
        # repeated.
        raw.send(FIND_COORDINATOR, 0, name)
        raw.receive()
        raw.send(JOIN_GROUP, 3, name + times + _text("") + _text(protocol_type) + protocol)
        answer = raw.receive()
        error, generation = struct.unpack_from(">hi", answer, 4)
    assert error == 0, error
    # The protocol's name and the leader's id come before the member's own id.
    at = 10
    for _ in range(3):
        (length,) = struct.unpack_from(">h", answer, at)
        member = answer[at + 2 : at + 2 + length].decode()
        at += 2 + length
    assigned = struct.pack(">i", 1) + _text(member) + _bytes(assignment)
    raw.send(SYNC_GROUP, 2, name + struct.pack(">i", generation) + _text(member) + assigned)
    (error,) = struct.unpack_from(">h", raw.receive(), 4)
    assert error == 0, error


def offer_raw_header(raw: Raw, topic: str, value: bytes) -> int:
    """Produces a record with two headers; the name of one is not UTF-8. Returns the error code."""
    return _produce(raw, topic, value, [(RawName("raw"), b"1"), ("text", b"2")])


def produce_batch(raw: Raw, topic: str, batch: bytes) -> None:
    """Produces a batch that was made elsewhere to partition 0."""
    error = _send_batch(raw, topic, batch)
    assert error == 0, error


def offer_to_internal_topic(raw: Raw, topic: str) -> int:
    """Produces with the client id of Kafka's own admin client. Returns the error code."""
    raw.client_id = b"__admin_client"
    return _produce(raw, topic, b"x", [])


def _produce(raw: Raw, topic: str, value: bytes, headers: list[tuple[str, bytes]]) -> int:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, BATCH_BYTES_MAX)
    builder.append(0, 1_700_000_000_000, None, value, headers)
    return _send_batch(raw, topic, bytes(builder.build()))


def _send_batch(raw: Raw, topic: str, batch: bytes) -> int:
    partition = struct.pack(">ii", 0, len(batch)) + batch
    body = struct.pack(">hhii", -1, -1, 10_000, 1) + _text(topic) + struct.pack(">i", 1) + partition
    raw.send(PRODUCE, PRODUCE_VERSION, body)
    answer = raw.receive()
    (error,) = struct.unpack_from(">h", answer, 4 + 2 + len(topic.encode()) + 4 + 4)
    return int(error)


def _text(content: str) -> bytes:
    encoded = content.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _bytes(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
