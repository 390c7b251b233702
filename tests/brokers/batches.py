"""Kafka's record batches (format version 2), read with nothing but their specification."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import cramjam
import zstandard
from aiokafka.record.util import calc_crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
LENGTH_COUNTS_FROM = 12
CRC_COVERS_FROM = 21
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16


class DamageError(Exception):
    """A stored checksum or field is wrong. The text says where, and what."""


def check(holds: bool, message: str) -> None:
    """Raises `DamageError` with this text unless the condition holds."""
    if not holds:
        raise DamageError(message)


@dataclass(frozen=True, slots=True)
class Record:
    """One record, with its offset and its timestamp."""

    offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch whose checksum holds."""

    base_offset: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    payload: bytes
    size: int

    @property
    def next_offset(self) -> int:
        """Offset after the last record."""
        return self.base_offset + self.last_offset_delta + 1

    def records(self) -> Iterator[Record]:
        """Its records in order. Raises `DamageError` where they are not as many as it says."""
        data = decompressed(self.attributes & 7, self.payload)
        position = 0
        for _ in range(self.count):
            length, position = varint(data, position)
            end = position + length
            at = position + 1  # attributes of a record: none are defined
            _, at = varint(data, at)
            offset_delta, at = varint(data, at)
            key, at = sized(data, at)
            value, at = sized(data, at)
            sequence = self.base_sequence
            if sequence >= 0:
                sequence = (sequence + offset_delta) % (1 << 31)
            yield Record(
                self.base_offset + offset_delta,
                self.leader_epoch,
                self.producer_id,
                self.producer_epoch,
                sequence,
                key,
                value,
            )
            position = end
        left = len(data) - position
        check(left == 0, f"batch at offset {self.base_offset}: {left} bytes too many")


def read_batch(raw: bytes, where: str) -> Batch:
    """Reads the batch that `raw` begins with. Raises `DamageError`."""
    check(len(raw) >= HEADER_BYTES, f"{where}: {len(raw)} bytes are no batch")
    (offset, length, epoch, magic, crc, attributes, delta, _, newest, pid, pepoch, seq, count) = (
        HEADER.unpack_from(raw)
    )
    size = LENGTH_COUNTS_FROM + length
    whole = magic == 2 and HEADER_BYTES <= size <= len(raw)
    check(whole, f"{where}: magic {magic}, {size} bytes of {len(raw)}")
    sound = calc_crc32c(raw[CRC_COVERS_FROM:size]) == crc
    check(sound, f"{where}: wrong checksum of the batch at offset {offset}")
    payload = bytes(raw[HEADER_BYTES:size])
    return Batch(offset, epoch, attributes, delta, newest, pid, pepoch, seq, count, payload, size)


def read_batches(raw: bytes, where: str) -> Iterator[Batch]:
    """Reads batches that stand one after another to the end of `raw`. Raises `DamageError`."""
    position = 0
    while position < len(raw):
        batch = read_batch(raw[position:], f"{where}+{position}")
        yield batch
        position += batch.size


def decompressed(codec: int, payload: bytes) -> bytes:
    """The records of a batch; `codec` is Kafka's number of the compression type."""
    match codec:
        case 0:
            return payload
        case 1:
            return zlib.decompress(payload, wbits=31)
        case 2:
            return b"".join(snappy_blocks(payload))
        case 3:
            return bytes(cramjam.lz4.decompress(payload))
        case 4:
            with zstandard.ZstdDecompressor().stream_reader(payload) as reader:
                return bytes(reader.read())
        case _:
            message = f"compression type {codec}"
            raise DamageError(message)


def snappy_blocks(payload: bytes) -> Iterator[bytes]:
    """One bare block, or blocks in xerial's frame as the Java client writes them."""
    if not payload.startswith(XERIAL_MAGIC):
        yield bytes(cramjam.snappy.decompress_raw(payload))
        return
    position = XERIAL_HEADER_BYTES
    while position < len(payload):
        (length,) = struct.unpack_from(">i", payload, position)
        position += 4
        yield bytes(cramjam.snappy.decompress_raw(payload[position : position + length]))
        position += length


def varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def sized(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Bytes behind their length as a varint; -1 is None."""
    length, position = varint(data, position)
    if length < 0:
        return None, position
    return bytes(data[position : position + length]), position + length
