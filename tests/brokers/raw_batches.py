"""Record batches made byte by byte, sound and damaged, each with a right checksum.

Written from Kafka's description of the format (version 2), with no client library: those make no
batch that is wrong.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import zstandard
from aiokafka.record.util import calc_crc32c

from tests.brokers.batches import HEADER, HEADER_BYTES

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
ZSTD_LEVEL = 3
JUNK = b"neither records nor what any codec makes of them"


# By number, with the levels and the framing of Kafka's own clients, which read no LZ4 blocks that
# need the ones before them.
compressed: dict[int, Callable[[bytes], bytes]] = {
    NONE: bytes,
    GZIP: lambda data: zlib.compress(data, wbits=31),
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    LZ4: lambda data: bytes(lz4.frame.compress(data, block_linked=False, store_size=False)),
    ZSTD: lambda data: zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data),
}


def write_varint(number: int) -> bytes:
    """A number as a zigzag varint."""
    zigzag = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def record_body(value: bytes, offset_delta: int, timestamp_delta: int = 0) -> bytes:
    """A record without its length: no key, no headers."""
    fields = b"\0" + write_varint(timestamp_delta) + write_varint(offset_delta) + write_varint(-1)
    return fields + write_varint(len(value)) + value + write_varint(0)


def records(values: Sequence[bytes], *, step_ms: int = 0) -> bytes:
    """Records with these values, each `step_ms` later than the one before."""
    bodies = [record_body(value, n, n * step_ms) for n, value in enumerate(values)]
    return b"".join(write_varint(len(body)) + body for body in bodies)


def batch(
    payload: bytes,
    count: int,
    *,
    codec: int = NONE,
    base_timestamp: int = 0,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch with this payload as it stands, whose header says that it holds `count` records."""
    newest = base_timestamp if max_timestamp is None else max_timestamp
    after_crc = struct.pack(
        ">hiqqqhii", codec, count - 1, base_timestamp, newest, -1, -1, -1, count
    )
    covered = after_crc + payload
    head = struct.pack(">qiibI", 0, HEADER_BYTES - 12 + len(payload), -1, 2, calc_crc32c(covered))
    assert len(head) + len(after_crc) == HEADER.size == HEADER_BYTES
    return head + covered


def sound_batch(
    values: Sequence[bytes],
    *,
    codec: int = NONE,
    base_timestamp: int = 0,
    step_ms: int = 0,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch of these values. Its largest timestamp is that of the last one unless it is given."""
    newest = base_timestamp + step_ms * (len(values) - 1)
    return batch(
        compressed[codec](records(values, step_ms=step_ms)),
        len(values),
        codec=codec,
        base_timestamp=base_timestamp,
        max_timestamp=newest if max_timestamp is None else max_timestamp,
    )


# Snappy's blocks begin with the length that they unpack to; librdkafka takes memory for it at once.
# Where it gets none it ends the process.
ENDS_READERS = "says that snappy unpacks it to 4 GiB"


def damaged_batches(base_timestamp: int) -> dict[str, bytes]:
    """A batch of each kind of damage, by the kind's name."""
    one, two = records([b"lost 0 " + bytes(24)]), records([b"lost 0", b"lost 1"])
    body = record_body(b"lost 0", 0)
    long_key = b"\0\0\0" + write_varint(1_000) + b"key" + write_varint(1) + b"v" + write_varint(0)
    many_headers = b"\0\0\0" + write_varint(-1) + write_varint(1) + b"v" + write_varint(2**31 - 1)
    payloads: dict[str, tuple[int, bytes, int]] = {
        "junk under gzip": (GZIP, JUNK, 2),
        "junk under snappy": (SNAPPY, JUNK, 2),
        "junk under lz4": (LZ4, JUNK, 2),
        "junk under zstd": (ZSTD, JUNK, 2),
        "plain junk": (NONE, JUNK, 2),
        "junk that gzip unpacks": (GZIP, compressed[GZIP](JUNK), 2),
        "junk that snappy unpacks": (SNAPPY, compressed[SNAPPY](JUNK), 2),
        "junk that lz4 unpacks": (LZ4, compressed[LZ4](JUNK), 2),
        "junk that zstd unpacks": (ZSTD, compressed[ZSTD](JUNK), 2),
        "gzip cut off": (GZIP, compressed[GZIP](two)[:-12], 2),
        "snappy cut off": (SNAPPY, compressed[SNAPPY](two)[:-12], 2),
        "lz4 cut off": (LZ4, compressed[LZ4](two)[:-20], 2),
        "zstd cut off": (ZSTD, compressed[ZSTD](two)[:-12], 2),
        "says 3 records, holds 1": (NONE, one, 3),
        "says 1 record, holds 2": (NONE, two, 1),
        "gzip, says 3 records, holds 1": (GZIP, compressed[GZIP](one), 3),
        "gzip, says 1 record, holds 2": (GZIP, compressed[GZIP](two), 1),
        "bytes behind the last record": (NONE, two + bytes(4), 2),
        "record longer than its batch": (NONE, write_varint(len(body) + 100) + body, 1),
        "record of 2 GiB": (NONE, write_varint(2**31 - 1) + body, 1),
        "record of negative length": (NONE, write_varint(-5) + body, 1),
        "record of no byte": (NONE, write_varint(0) + body, 1),
        "key longer than its record": (NONE, write_varint(len(long_key)) + long_key, 1),
        "2 billion headers": (NONE, write_varint(len(many_headers)) + many_headers, 1),
        ENDS_READERS: (SNAPPY, b"\xff\xff\xff\xff\x0f" + JUNK, 2),
    }
    return {
        kind: batch(payload, count, codec=codec, base_timestamp=base_timestamp)
        for kind, (codec, payload, count) in payloads.items()
    }
