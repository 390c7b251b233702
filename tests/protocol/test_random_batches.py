"""What a broker answers to random batches, and what it stores of them.

What is accepted can be read to its end by every client, with offsets that increase by one, and has
the largest timestamp of its records. What is refused leaves nothing. In `make test-all` Apache
Kafka answers the same, except to what it stores though clients cannot read it, or read it in
different ways.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import cramjam
import pytest
import zstandard
from confluent_kafka import Consumer, TopicPartition
from hypothesis import HealthCheck, event, given, settings

from tests.brokers.batches import (
    HEADER,
    HEADER_BYTES,
    DamageError,
    check,
    decompressed,
    read_batches,
)
from tests.protocol.peer_world import running_peer_world
from tests.protocol.random_batches import SentBatch, sent_batches
from tests.protocol.world import REQUEST_TIMEOUT_MS, World

INVALID_RECORD, INVALID_TIMESTAMP, UNKNOWN_SERVER_ERROR = 87, 32, -1
# Never reached when all is well.
READ_LIMIT_S = 20.0
# The limits are such that only the records decide, and not the clock.
CONFIGS = {"message_timestamp_before_max_ms": str(2**63 - 1), "retention_ms": "-1"}
checked = settings(deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a batch, and what is stored of it where it was accepted."""

    error: int
    base_offset: int = -1
    header: tuple[int, ...] = ()
    # Offset, less the first one's, and timestamp; None where a client cannot read them.
    records: tuple[tuple[int, int], ...] | None = ()


def outcome(world: World, topic: str, batch: bytes) -> Outcome:
    """Sends a batch, and reads back what is stored of it."""
    partition = {"Index": 0, "Records": batch}
    topics: list[object] = [{"Name": topic, "PartitionData": [partition]}]
    body = {"Acks": -1, "TimeoutMs": REQUEST_TIMEOUT_MS, "TopicData": topics}
    (result,) = world.ask("Produce", body, 9)["Responses"][0]["PartitionResponses"]
    error, base = result["ErrorCode"], result["BaseOffset"]
    if error != 0:
        return Outcome(error)
    entry = {"Partition": 0, "FetchOffset": base, "PartitionMaxBytes": 1 << 20}
    topics = [{"Topic": topic, "Partitions": [entry]}]
    body = {"MaxWaitMs": 1_000, "MinBytes": 1, "Topics": topics}
    (fetched,) = world.ask("Fetch", body, 11)["Responses"][0]["Partitions"]
    data = fetched["Records"]
    (_, _, _, _, _, attributes, last, first_ms, largest_ms, *_, count) = HEADER.unpack(
        data[:HEADER_BYTES]
    )
    return Outcome(error, base, (attributes, last, first_ms, largest_ms, count), read_records(data))


def end_offset(world: World, topic: str) -> int:
    """The end of the log."""
    entry = {"PartitionIndex": 0, "Timestamp": -1}
    body = {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": [entry]}]}
    (listed,) = world.ask("ListOffsets", body, 7)["Topics"][0]["Partitions"]
    return int(listed["Offset"])


def read_records(data: bytes) -> tuple[tuple[int, int], ...] | None:
    """The records of the first batch, with nothing behind the last; None where clients differ."""
    batch = next(read_batches(data, "a fetched batch"))
    first_ms = HEADER.unpack(data[:HEADER_BYTES])[7]
    try:
        content = decompressed(batch.attributes & 7, batch.payload)
        position = 0
        records: list[tuple[int, int]] = []
        for _ in range(batch.count):
            offset_delta, timestamp_delta, position = read_record(content, position)
            check(offset_delta == len(records), "an offset that is not the next one")
            records.append((offset_delta, first_ms + timestamp_delta))
        check(position == len(content), "bytes behind the last record")
    except (DamageError, cramjam.DecompressionError, zlib.error, zstandard.ZstdError) as error:
        event(f"a client cannot read it: {type(error).__name__}")
        return None
    return tuple(records)


def read_record(content: bytes, position: int) -> tuple[int, int, int]:
    """Offset delta, timestamp delta and the position behind a record. Raises `DamageError`."""
    length, position = number(content, position, 32)
    end = position + length
    timestamp_delta, position = number(content, position + 1, 64)
    offset_delta, position = number(content, position, 32)
    for _ in ("key", "value"):
        size, position = nullable_size(content, position)
        position += size
    count, position = number(content, position, 32)
    check(count >= 0, "a negative number of headers")
    for _ in range(count):
        size, position = number(content, position, 32)
        check(size >= 0, "a header without a key")
        size, position = nullable_size(content, position + size)
        position += size
    check(position == end <= len(content), "the fields are not as long as the record")
    return offset_delta, timestamp_delta, position


def nullable_size(content: bytes, position: int) -> tuple[int, int]:
    """The length of a key or a value, and the position behind it. Only -1 says that it is none."""
    size, position = number(content, position, 32)
    check(size >= -1, "a length below -1")
    return max(0, size), position


def number(content: bytes, position: int, bits: int) -> tuple[int, int]:
    """A zigzag varint. Java's client leaves bits beyond the last out, and librdkafka does not."""
    raw = 0
    for shift in range(0, bits, 7):
        check(position < len(content), "the bytes end within a number")
        byte = content[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            check(raw < 1 << bits, "a number of too many bits")
            return (raw >> 1) ^ -(raw & 1), position
    message = "a number that is too long"
    raise DamageError(message)


@pytest.fixture(scope="module")
def topic(world):
    """A topic for batches, one after another."""
    return world.create_topic(**CONFIGS)


@checked
@given(sent=sent_batches())
def test_what_is_accepted_is_read_and_what_is_refused_leaves_nothing(
    world: World, topic: str, sent: SentBatch
) -> None:
    before = end_offset(world, topic)
    answered = outcome(world, topic, sent.data)
    event(f"error {answered.error}")
    if sent.is_sound:
        assert answered.error == 0
    if answered.error != 0:
        assert end_offset(world, topic) == before
        return
    assert answered.records is not None
    _, last, _, largest_ms, count = answered.header
    assert count == last + 1 == len(answered.records)
    assert largest_ms == max(-1, *(timestamp for _, timestamp in answered.records))
    assert answered.base_offset == before
    assert end_offset(world, topic) == before + count


def test_librdkafka_reads_all_that_is_accepted_with_offsets_that_increase_by_one(
    world: World,
) -> None:
    topic = world.create_topic(1, **CONFIGS)

    @settings(checked, max_examples=60)
    @given(sent=sent_batches())
    def send(sent: SentBatch) -> None:
        outcome(world, topic, sent.data)

    send()
    account = world.place.root
    consumer = Consumer(
        {
            "bootstrap.servers": world.place.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": account.user,
            "sasl.password": account.password,
            "group.id": topic,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    end = end_offset(world, topic)
    offsets: list[int | None] = []
    while len(offsets) < end:
        message = consumer.poll(READ_LIMIT_S)
        assert message is not None, f"nothing behind {offsets[-1:]} of {end}"
        assert message.error() is None, message.error()
        offsets.append(message.offset())
    consumer.close()
    assert end > 0
    assert offsets == list(range(end))


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Apache Kafka with content."""
    with running_peer_world(tmp_path_factory.mktemp("peer")) as made:
        yield made


@pytest.fixture(scope="module")
def peer_topic(peer):
    """A topic of Apache Kafka for the same batches."""
    return peer.create_topic(**CONFIGS)


@pytest.mark.full
@settings(checked, max_examples=600)
@given(sent=sent_batches())
def test_kafka_answers_the_same(
    world: World, topic: str, peer: World, peer_topic: str, sent: SentBatch
) -> None:
    ours = outcome(world, topic, sent.data)
    theirs = outcome(peer, peer_topic, sent.data)
    # Kafka stores some records that clients cannot read.
    if theirs.error == UNKNOWN_SERVER_ERROR or theirs.records is None:
        assert ours.error == INVALID_RECORD
        return
    # And bytes behind a frame, which its own client ignores.
    if ours.error == INVALID_RECORD and theirs.error == 0 and sent.is_cut:
        return
    # And times before 1970, of which clients make different things.
    if any(timestamp < -1 for _, timestamp in theirs.records):
        assert ours.error == INVALID_TIMESTAMP
        return
    assert ours.error == theirs.error
    assert (ours.header, ours.records) == (theirs.header, theirs.records)
