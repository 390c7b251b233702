"""Rows of usage files out of lanes and slots, column by column: no Python object a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from brokers.usage import EGRESS, INGRESS, LaneReading
from metering.events.records import (
    COLUMNS,
    SCHEMA_VERSION,
    SERVICE_PRINCIPAL,
    USAGE_SCHEMA,
    Meter,
)
from metering.events.slots import Slot
from metering.events.times import MINUTE_MS

METER_NAMES = {INGRESS: Meter.INGRESS_BYTES, EGRESS: Meter.EGRESS_BYTES}


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose rows they are."""

    cell: str
    cluster_id: str
    organization_id: str


def lane_table(
    owner: Owner, incarnation: int, reading: LaneReading, internal: Callable[[str], bool]
) -> pa.Table:
    """The rows of a reading, but for `emitted_at_ms`, which `stamped` adds.

    `internal` tells of a topic id whether it is the service's own.
    """
    rows = reading.rows
    topic = _view(reading.topic, pa.int32(), rows)
    principal = _view(reading.principal, pa.int32(), rows)
    partition = _view(reading.partition, pa.int32(), rows)
    meter = _view(reading.meter, pa.int8(), rows)
    written = _view(reading.written_at_ms, pa.int64(), rows)
    minute = pc.multiply(pc.divide(written, MINUTE_MS), MINUTE_MS)
    ours = pa.array([each == SERVICE_PRINCIPAL for each in reading.principals], pa.bool_())
    theirs = pa.array([internal(each) for each in reading.topics], pa.bool_())
    unbilled = pc.or_(pc.take(ours, principal), pc.take(theirs, topic))
    columns = {
        **_owner_columns(owner, rows),
        "incarnation": _repeated(incarnation, pa.int64(), rows),
        "lane_file": _view(reading.file, pa.int64(), rows),
        "block": _view(reading.sequence, pa.int64(), rows),
        "topic_id": pa.DictionaryArray.from_arrays(topic, pa.array(reading.topics, pa.string())),
        "partition": pc.if_else(pc.less(partition, 0), pa.scalar(None, pa.int32()), partition),
        "principal": pa.DictionaryArray.from_arrays(
            principal, pa.array(reading.principals, pa.string())
        ),
        "meter": pa.DictionaryArray.from_arrays(
            meter, pa.array([METER_NAMES[name] for name in sorted(METER_NAMES)], pa.string())
        ),
        "window_start_ms": minute,
        "window_end_ms": pc.add(minute, MINUTE_MS),
        "quantity": _view(reading.quantity, pa.int64(), rows),
        "cumulative": pc.if_else(
            pc.equal(meter, EGRESS),
            _view(reading.cumulative, pa.int64(), rows),
            pa.scalar(None, pa.int64()),
        ),
        "billed": pc.invert(unbilled),
    }
    return pa.table(columns)


def slot_table(owner: Owner, slot: Slot) -> pa.Table:
    """The rows of a slot, but for `emitted_at_ms`."""
    rows = len(slot.rows)
    nothing = pa.nulls(rows, pa.int64())
    columns = {
        **_owner_columns(owner, rows),
        "incarnation": _optional([row.incarnation for row in slot.rows], pa.int64()),
        "lane_file": nothing,
        "block": nothing,
        "topic_id": _texts([row.topic_id for row in slot.rows]),
        "partition": _optional([row.partition for row in slot.rows], pa.int32()),
        "principal": pa.nulls(rows, pa.string()).dictionary_encode(),
        "meter": _texts([row.meter for row in slot.rows]),
        "window_start_ms": _repeated(slot.window_start_ms, pa.int64(), rows),
        "window_end_ms": _repeated(slot.window_end_ms, pa.int64(), rows),
        "quantity": pa.array([row.quantity for row in slot.rows], pa.int64()),
        "cumulative": nothing,
        "billed": pa.array([row.billed for row in slot.rows], pa.bool_()),
    }
    return pa.table(columns)


def stamped(tables: Collection[pa.Table], emitted_at_ms: int) -> pa.Table:
    """All rows as they go into a usage file."""
    if not tables:
        return USAGE_SCHEMA.empty_table()
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    column = _repeated(emitted_at_ms, pa.int64(), whole.num_rows)
    return whole.append_column("emitted_at_ms", column).select(COLUMNS)


def _owner_columns(owner: Owner, rows: int) -> dict[str, pa.Array]:
    return {
        "schema_version": _repeated(SCHEMA_VERSION, pa.int32(), rows),
        "cell": _repeated_text(owner.cell, rows),
        "cluster_id": _repeated_text(owner.cluster_id, rows),
        "organization_id": _repeated_text(owner.organization_id, rows),
    }


def _view(buffer: bytes, kind: pa.DataType, rows: int) -> pa.Array:
    """A column over the reader's own bytes. Unsigned numbers are below 2^63, places below 2^31."""
    if len(buffer) * 8 != rows * kind.bit_width:
        message = f"{len(buffer)} bytes are no {rows} values of {kind.bit_width} bits"
        raise ValueError(message)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)])


def _repeated(value: int, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def _repeated_text(text: str, rows: int) -> pa.Array:
    places = pa.repeat(pa.scalar(0, pa.int32()), rows)
    return pa.DictionaryArray.from_arrays(places, pa.array([text], pa.string()))


def _texts(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.string()).dictionary_encode()


def _optional(numbers: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Numbers, of which -1 stands for none."""
    return pa.array([None if number < 0 else number for number in numbers], kind)
