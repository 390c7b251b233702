"""Kafka's record batches (format version 2): written for requests, read strictly from answers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import (
    HEADER,
    Batch,
    check,
    decompressed,
    read_batches,
    sized,
    varint,
)
from tests.brokers.raw_batches import compressed, write_varint

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MAGIC = 2
NO_PRODUCER = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class Record:
    """A record. `timestamp` is in ms since 1970; headers keep their order and may repeat."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch as it was fetched, with its records and their offsets."""

    base_offset: int
    leader_epoch: int
    codec: str
    max_timestamp: int
    records: tuple[tuple[int, Record], ...]


def write_batch(
    records: Sequence[Record],
    codec: str = "none",
    *,
    producer: tuple[int, int, int] = NO_PRODUCER,
) -> bytes:
    """A batch as a producer sends it. `producer` is its id, its epoch and the first sequence."""
    base = records[0].timestamp
    payload = compressed[CODECS.index(codec)](
        b"".join(_write_record(*pair, base) for pair in enumerate(records))
    )
    newest = max(record.timestamp for record in records)
    last = len(records) - 1
    covered = struct.pack(">hiqq", CODECS.index(codec), last, base, newest)
    covered += struct.pack(">qhii", *producer, len(records)) + payload
    head = struct.pack(">ib", -1, MAGIC) + struct.pack(">I", calc_crc32c(covered))
    return struct.pack(">qi", 0, len(head) + len(covered)) + head + covered


def _write_sized(data: bytes | None) -> bytes:
    return write_varint(-1) if data is None else write_varint(len(data)) + data


def _write_record(offset_delta: int, record: Record, base: int) -> bytes:
    body = b"\0" + write_varint(record.timestamp - base) + write_varint(offset_delta)
    body += _write_sized(record.key) + _write_sized(record.value)
    body += write_varint(len(record.headers))
    for name, value in record.headers:
        body += _write_sized(name.encode()) + _write_sized(value)
    return write_varint(len(body)) + body


def read_stored(data: bytes, where: str) -> list[StoredBatch]:
    """Reads the batches of an answer, to their last byte. Raises `DamageError`.

    Checksums, lengths and counts hold, and the largest timestamp is that of a record.
    """
    stored = []
    position = 0
    for batch in read_batches(data, where):
        (*_, base_timestamp, _, _, _, _, _) = HEADER.unpack_from(data, position)
        records = tuple(_read_records(batch, base_timestamp))
        newest = max(record.timestamp for _, record in records)
        check(newest == batch.max_timestamp, f"{where}: max_timestamp {batch.max_timestamp}")
        check(batch.last_offset_delta == len(records) - 1, f"{where}: last offset")
        codec = CODECS[batch.attributes & 7]
        stored.append(StoredBatch(batch.base_offset, batch.leader_epoch, codec, newest, records))
        position += batch.size
    return stored


def _read_records(batch: Batch, base_timestamp: int) -> Iterator[tuple[int, Record]]:
    data = decompressed(batch.attributes & 7, batch.payload)
    position = 0
    for expected_delta in range(batch.count):
        length, position = varint(data, position)
        end = position + length
        check(data[position] == 0, "attributes of a record, of which there are none")
        timestamp_delta, position = varint(data, position + 1)
        offset_delta, position = varint(data, position)
        check(offset_delta == expected_delta, f"offset delta {offset_delta}")
        key, position = sized(data, position)
        value, position = sized(data, position)
        count, position = varint(data, position)
        headers = []
        for _ in range(count):
            name, position = sized(data, position)
            content, position = sized(data, position)
            check(name is not None, "a header without name")
            headers.append(((name or b"").decode(), content))
        check(position == end, f"a record of {length} bytes ends at another byte")
        record = Record(key, value, base_timestamp + timestamp_delta, tuple(headers))
        yield batch.base_offset + offset_delta, record
    check(position == len(data), f"{len(data) - position} bytes behind the last record")


def damaged(batch: bytes) -> bytes:
    """The batch with one bit of its records turned, so that its checksum is wrong."""
    return batch[:-1] + bytes([batch[-1] ^ 1])
