"""Record batches are read as they were written; damage of any kind is refused."""

import struct

import pytest
from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import CRC_COVERS_FROM, HEADER_BYTES, DamageError
from tests.brokers.raw_batches import GZIP, compressed, write_varint
from tests.protocol.records import (
    CODECS,
    Record,
    damaged,
    read_stored,
    write_batch,
)
from tests.protocol.world import START_MS, records_of


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read(codec):
    first, second = records_of(codec), [Record(b"k" * 1000, b"v" * 1000, START_MS)]
    data = write_batch(first, codec) + write_batch(second, codec, producer=(5, 1, 7))
    one, two = read_stored(data, "here")
    assert [record for _, record in one.records] == first
    assert [record for _, record in two.records] == second
    assert one.codec == two.codec == codec


def resealed(batch):
    """The batch with the checksum that its content has."""
    checksum = struct.pack(">I", calc_crc32c(batch[CRC_COVERS_FROM:]))
    return batch[: CRC_COVERS_FROM - 4] + checksum + batch[CRC_COVERS_FROM:]


def with_records(payload, count=1, codec="none"):
    """A batch that says it has so many records, with this payload."""
    head = write_batch([Record(b"", b"", START_MS)] * count, codec)[:HEADER_BYTES]
    length = struct.pack(">i", HEADER_BYTES - 12 + len(payload))
    return resealed(head[:8] + length + head[12:] + payload)


BODY = b"\0\0\0" + write_varint(-1) + write_varint(1) + b"v" + write_varint(0)
SOUND = write_varint(len(BODY)) + BODY


@pytest.mark.parametrize(
    "data",
    [
        damaged(write_batch(records_of("x"))),
        write_batch(records_of("x"))[:-1],
        write_batch(records_of("x")) + b"\0",
        with_records(SOUND + b"\0"),
        with_records(SOUND + SOUND),
        with_records(write_varint(len(BODY) + 1) + BODY + b"\0"),
        with_records(write_varint(len(BODY)) + b"\1" + BODY[1:]),
        with_records(write_varint(len(BODY)) + b"\0\2" + BODY[2:]),
        with_records(write_varint(len(BODY)) + b"\0\0\2" + BODY[3:]),
        with_records(compressed[GZIP](SOUND + b"\0"), codec="gzip"),
    ],
)
def test_damage_is_refused(data):
    assert read_stored(with_records(SOUND), "here")
    with pytest.raises(DamageError):
        read_stored(data, "here")
