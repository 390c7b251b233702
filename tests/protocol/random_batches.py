"""Batches as random producers send them: sound ones, and ones that are damaged anywhere."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from aiokafka.record.util import calc_crc32c
from hypothesis import strategies as st

from tests.brokers.batches import HEADER_BYTES
from tests.brokers.raw_batches import compressed
from tests.protocol.records import CODECS, Record, write_batch

T0 = 1_700_000_000_000
CRC_AT, ATTRIBUTES_AT, DELTA_AT, MAX_TIMESTAMP_AT, COUNT_AT = 17, 21, 23, 35, 57
# Fields that say who produced the batch: what a broker answers to them depends on its state.
PRODUCER = range(43, COUNT_AT)


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch, and whether anything in it was damaged."""

    data: bytes
    is_sound: bool
    # Whether its payload ends elsewhere, with any bytes behind its end.
    is_cut: bool = False


def resealed(batch: bytes) -> bytes:
    """The batch with the length and the checksum that its bytes have."""
    length = struct.pack(">i", len(batch) - 12)
    crc = struct.pack(">I", calc_crc32c(batch[ATTRIBUTES_AT:]))
    return batch[:8] + length + batch[12:CRC_AT] + crc + batch[ATTRIBUTES_AT:]


def turned(data: bytes, places: list[tuple[int, int]]) -> bytes:
    """The bytes with some of them replaced, by place modulo the length."""
    changed = bytearray(data)
    for at, value in places:
        if changed:
            changed[at % len(changed)] = value
    return bytes(changed)


sizes = st.binary(max_size=40) | st.none()
record_lists = st.lists(
    st.builds(
        Record,
        key=sizes,
        value=sizes,
        timestamp=st.integers(T0 - 5_000, T0 + 5_000) | st.just(-1),
        headers=st.lists(st.tuples(st.text("aé", max_size=3), sizes), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
)
places = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3)


@st.composite
def sent_batches(draw: st.DrawFn) -> SentBatch:
    """A batch under any codec; half of them are damaged in one way."""
    codec = draw(st.sampled_from(CODECS))
    records = draw(record_lists)
    batch = write_batch(records, codec)
    named = draw(st.sampled_from([None, -1, T0, T0 + 9_000]))
    if named is not None:
        largest = struct.pack(">q", named)
        batch = batch[:MAX_TIMESTAMP_AT] + largest + batch[MAX_TIMESTAMP_AT + 8 :]
    header, payload = batch[:HEADER_BYTES], batch[HEADER_BYTES:]
    damage = draw(st.sampled_from(["none"] * 6 + ["records", "payload", "count", "header", "cut"]))
    match damage:
        case "records":
            plain = write_batch(records)[HEADER_BYTES:]
            payload = compressed[CODECS.index(codec)](turned(plain, draw(places)))
        case "payload":
            payload = turned(payload, draw(places))
        case "count":
            count = draw(st.integers(-1, 7))
            last = draw(st.integers(-1, 7))
            header = header[:DELTA_AT] + struct.pack(">i", last) + header[DELTA_AT + 4 :]
            header = header[:COUNT_AT] + struct.pack(">i", count)
        case "header":
            at = draw(st.integers(0, HEADER_BYTES - 1).filter(lambda at: at not in PRODUCER))
            header = header[:at] + bytes([draw(st.integers(0, 255))]) + header[at + 1 :]
            return SentBatch(header + payload, is_sound=False)
        case "cut":
            end = draw(st.integers(0, len(payload)))
            payload = payload[:end] + draw(st.binary(max_size=20))
    return SentBatch(resealed(header + payload), damage == "none", damage == "cut")
