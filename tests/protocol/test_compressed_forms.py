"""Which forms of compressed batches a broker takes: those that every client reads.

Each form that some client refuses, reads in part or does not survive gets INVALID_RECORD and a text
that says what to send. What producers write is taken, and librdkafka reads it back.
"""

from __future__ import annotations

import gzip
import io
import struct

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from confluent_kafka import Consumer, TopicPartition

from tests.brokers.batches import HEADER_BYTES
from tests.brokers.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, compressed
from tests.protocol.random_batches import ATTRIBUTES_AT, resealed
from tests.protocol.records import Record, write_batch
from tests.protocol.world import REQUEST_TIMEOUT_MS, World

INVALID_RECORD = 87
# Never reached when all is well.
READ_LIMIT_S = 20.0
COUNT = 300
PLAIN = write_batch([Record(None, b"value %d" % n, 1_700_000_000_000) for n in range(COUNT)])
CONTENT = PLAIN[HEADER_BYTES:]
XERIAL = b"\x82SNAPPY\0"
SKIPPABLE = b"\x50\x2a\x4d\x18\x01\0\0\0x"
# The head of a zstd frame with a window of 2 GiB.
HUGE_WINDOW = b"\x28\xb5\x2f\xfd\0\xa8"

one_gzip, one_snappy, one_lz4, one_zstd = (
    compressed[codec](CONTENT) for codec in (GZIP, SNAPPY, LZ4, ZSTD)
)


def batch_of(codec: int, payload: bytes) -> bytes:
    """The batch of all records, with this payload."""
    header = bytearray(PLAIN[:HEADER_BYTES])
    header[ATTRIBUTES_AT + 1] = codec
    return resealed(bytes(header) + payload)


def xerial(content: bytes, version: int = 1) -> bytes:
    """A xerial stream of one block."""
    block = compressed[SNAPPY](content)
    return XERIAL + struct.pack(">iii", version, 1, len(block)) + block


def named_gzip(content: bytes) -> bytes:
    """A gzip member with a file name."""
    out = io.BytesIO()
    with gzip.GzipFile("a name", "wb", fileobj=out) as member:
        member.write(content)
    return out.getvalue()


def zstd_of(level: int, window_log: int) -> bytes:
    """A frame as Java's producer writes it: a stream, whose size is not known."""
    parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=window_log)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(CONTENT) + compressor.flush()


def raw_zstd_block(content: bytes) -> bytes:
    """The last block of a frame, not compressed."""
    return struct.pack("<I", len(content) << 3 | 1)[:3] + content


REFUSED = {
    "gzip: an empty member first": (GZIP, compressed[GZIP](b"") + one_gzip),
    "gzip: an empty member last": (GZIP, one_gzip + compressed[GZIP](b"")),
    "gzip: two members": (GZIP, compressed[GZIP](CONTENT[:99]) + compressed[GZIP](CONTENT[99:])),
    "gzip: bytes behind": (GZIP, one_gzip + b"\0"),
    "gzip: a file name": (GZIP, named_gzip(CONTENT)),
    "snappy: two streams": (SNAPPY, xerial(CONTENT[:99]) + xerial(CONTENT[99:])),
    "snappy: bytes behind": (SNAPPY, xerial(CONTENT) + b"\0\0"),
    "snappy: version 2": (SNAPPY, xerial(CONTENT, 2)),
    "snappy: an empty block": (SNAPPY, xerial(CONTENT) + struct.pack(">ib", 1, 0)),
    "lz4: two frames": (LZ4, compressed[LZ4](CONTENT[:99]) + compressed[LZ4](CONTENT[99:])),
    "lz4: bytes behind": (LZ4, one_lz4 + b"\0"),
    "lz4: linked blocks": (LZ4, bytes(cramjam.lz4.compress(CONTENT))),
    "lz4: no end mark": (LZ4, one_lz4[:-4]),
    "lz4: an empty block": (LZ4, one_lz4[:-4] + b"\0\0\0\x80" + one_lz4[-4:]),
    "zstd: two frames": (ZSTD, compressed[ZSTD](CONTENT[:99]) + compressed[ZSTD](CONTENT[99:])),
    "zstd: a skippable frame first": (ZSTD, SKIPPABLE + one_zstd),
    "zstd: a skippable frame last": (ZSTD, one_zstd + SKIPPABLE),
    "zstd: a window of 2 GiB": (ZSTD, HUGE_WINDOW + raw_zstd_block(CONTENT)),
}

ACCEPTED = {
    "gzip": (GZIP, one_gzip),
    "gzip of the highest level": (GZIP, gzip.compress(CONTENT, 9)),
    "snappy, bare": (SNAPPY, one_snappy),
    "snappy of Java": (SNAPPY, xerial(CONTENT)),
    "lz4": (LZ4, one_lz4),
    "lz4 with sums and its size": (
        LZ4,
        bytes(
            lz4.frame.compress(
                CONTENT,
                block_linked=False,
                store_size=True,
                content_checksum=True,
                block_checksum=True,
                block_size=lz4.frame.BLOCKSIZE_MAX4MB,
            )
        ),
    ),
    "zstd": (ZSTD, one_zstd),
    "zstd of level 19": (ZSTD, zstd_of(19, 23)),
    "zstd of level 21": (ZSTD, zstd_of(21, 26)),
    "zstd of level 22": (ZSTD, zstd_of(22, 27)),
}


def answer(world: World, topic: str, batch: bytes) -> tuple[int, str]:
    """The error of a batch, and what the broker says of it."""
    partition = {"Index": 0, "Records": batch}
    topics: list[object] = [{"Name": topic, "PartitionData": [partition]}]
    body = {"Acks": -1, "TimeoutMs": REQUEST_TIMEOUT_MS, "TopicData": topics}
    (result,) = world.ask("Produce", body, 9)["Responses"][0]["PartitionResponses"]
    return result["ErrorCode"], result["ErrorMessage"] or ""


@pytest.fixture(scope="module")
def topic(world):
    """A topic for batches that are refused."""
    return world.create_topic(1)


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_not_every_client_reads_is_refused_by_name(
    world: World, topic: str, name: str
) -> None:
    codec, payload = REFUSED[name]
    error, message = answer(world, topic, batch_of(codec, payload))
    assert error == INVALID_RECORD
    assert name.partition(":")[0] in message
    if "window" in name:
        assert "window" in message
    else:
        assert "; send " in message


def test_a_header_whose_key_is_no_text_is_refused(world: World, topic: str) -> None:
    sound = write_batch([Record(b"k", b"v", 1_700_000_000_000, (("name", b"x"),))])
    assert answer(world, topic, sound) == (0, "")
    error, message = answer(world, topic, resealed(sound.replace(b"name", b"nam\xff")))
    assert error == INVALID_RECORD
    assert "UTF-8" in message


def test_librdkafka_reads_what_producers_write(world: World) -> None:
    topic = world.create_topic(1)
    for name, (codec, payload) in ACCEPTED.items():
        assert answer(world, topic, batch_of(codec, payload)) == (0, ""), name
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
    values: list[bytes | None] = []
    while len(values) < COUNT * len(ACCEPTED):
        message = consumer.poll(READ_LIMIT_S)
        assert message is not None, f"nothing behind {len(values)} records"
        assert message.error() is None, message.error()
        values.append(message.value())
    consumer.close()
    assert values == [b"value %d" % n for n in range(COUNT)] * len(ACCEPTED)
