"""Rows of usage files from lanes and slots, made column by column, without a Python object for
each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from brokers.usage import EGRESS, INGRESS, LaneReading
from console.base.runtime.texts import storable_name
from metering.events.records import (
    BLOCKS_VERSION,
    COLUMNS,
    FILES_VERSION,
    SERVICE_PRINCIPAL,
    USAGE_SCHEMA,
    Meter,
)
from metering.events.slots import Slot
from metering.events.times import MINUTE_MS

METER_NAMES = {INGRESS: Meter.INGRESS_BYTES, EGRESS: Meter.EGRESS_BYTES}


# PostgreSQL indexes texts of up to 2,700 bytes; users of Kafka have names of up to 255.
PRINCIPAL_CHARS_MAX = 512
# All columns of a row of a lane but its version, its block and what is added up.
_FILE_KEY = [
    name
    for name in COLUMNS
    if name not in {"schema_version", "block", "quantity", "cumulative", "emitted_at_ms"}
]


@dataclass(frozen=True, slots=True)
class Owner:
    """The cell, cluster and organization that rows belong to."""

    cell: str
    cluster_id: str
    organization_id: str


def lane_table(
    owner: Owner, incarnation: int, reading: LaneReading, internal: Callable[[str], bool]
) -> pa.Table:
    """The rows of a reading, without the column `emitted_at_ms`, which `stamp_rows` adds.

    `internal` takes a topic id and returns whether the topic is an internal one.
    """
    rows = reading.rows
    topic = _column_over(reading.topic, pa.int32(), rows)
    principal = _column_over(reading.principal, pa.int32(), rows)
    partition = _column_over(reading.partition, pa.int32(), rows)
    meter = _column_over(reading.meter, pa.int8(), rows)
    written = _column_over(reading.written_at_ms, pa.int64(), rows)
    minute = pc.multiply(pc.divide(written, MINUTE_MS), MINUTE_MS)
    of_service = pa.array([name == SERVICE_PRINCIPAL for name in reading.principals], pa.bool_())
    of_internal_topic = pa.array([internal(topic_id) for topic_id in reading.topics], pa.bool_())
    unbilled = pc.or_(pc.take(of_service, principal), pc.take(of_internal_topic, topic))
    columns = {
        **_owner_columns(owner, rows),
        "incarnation": _repeat_value(incarnation, pa.int64(), rows),
        "lane_file": _column_over(reading.file, pa.int64(), rows),
        "block": _column_over(reading.sequence, pa.int64(), rows),
        "topic_id": pa.DictionaryArray.from_arrays(topic, pa.array(reading.topics, pa.string())),
        "partition": pc.if_else(pc.less(partition, 0), pa.scalar(None, pa.int32()), partition),
        "principal": pa.DictionaryArray.from_arrays(
            principal, pa.array(_named(reading.principals), pa.string())
        ),
        "meter": pa.DictionaryArray.from_arrays(
            meter, pa.array([METER_NAMES[name] for name in sorted(METER_NAMES)], pa.string())
        ),
        "window_start_ms": minute,
        "window_end_ms": pc.add(minute, MINUTE_MS),
        "quantity": _column_over(reading.quantity, pa.int64(), rows),
        "cumulative": pc.if_else(
            pc.equal(meter, EGRESS),
            _column_over(reading.cumulative, pa.int64(), rows),
            pa.scalar(None, pa.int64()),
        ),
        "billed": pc.invert(unbilled),
    }
    return pa.table(columns)


def _named(principals: Sequence[str]) -> list[str]:
    """The principals as all readers of a file can store them: users made them."""
    return [storable_name(principal, PRINCIPAL_CHARS_MAX) for principal in principals]


def sum_files(rows: pa.Table) -> pa.Table:
    """Rows of version 2: sums of rows by block, over all blocks of a file in one minute."""
    sums = rows.unify_dictionaries().group_by(_FILE_KEY, use_threads=False)
    summed = sums.aggregate([("quantity", "sum"), ("cumulative", "max")])
    count = summed.num_rows
    return (
        summed.rename_columns([*_FILE_KEY, "quantity", "cumulative"])
        .append_column("schema_version", _repeat_value(FILES_VERSION, pa.int32(), count))
        .append_column("block", pa.nulls(count, pa.int64()))
        .select(rows.column_names)
    )


def slot_table(owner: Owner, slot: Slot) -> pa.Table:
    """The rows of a slot, without the column `emitted_at_ms`, which `stamp_rows` adds."""
    rows = len(slot.rows)
    nothing = pa.nulls(rows, pa.int64())
    columns = {
        **_owner_columns(owner, rows),
        "incarnation": _optional_column([row.incarnation for row in slot.rows], pa.int64()),
        "lane_file": nothing,
        "block": nothing,
        "topic_id": _text_column([row.topic_id for row in slot.rows]),
        "partition": _optional_column([row.partition for row in slot.rows], pa.int32()),
        "principal": pa.nulls(rows, pa.string()).dictionary_encode(),
        "meter": _text_column([row.meter for row in slot.rows]),
        "window_start_ms": _repeat_value(slot.window_start_ms, pa.int64(), rows),
        "window_end_ms": _repeat_value(slot.window_end_ms, pa.int64(), rows),
        "quantity": pa.array([row.quantity for row in slot.rows], pa.int64()),
        "cumulative": nothing,
        "billed": pa.array([row.billed for row in slot.rows], pa.bool_()),
    }
    return pa.table(columns)


def stamp_rows(tables: Collection[pa.Table], emitted_at_ms: int) -> pa.Table:
    """The rows of all tables as one table with the columns of a usage file."""
    if not tables:
        return USAGE_SCHEMA.empty_table()
    whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    column = _repeat_value(emitted_at_ms, pa.int64(), whole.num_rows)
    return whole.append_column("emitted_at_ms", column).select(COLUMNS)


def _owner_columns(owner: Owner, rows: int) -> dict[str, pa.Array]:
    return {
        "schema_version": _repeat_value(BLOCKS_VERSION, pa.int32(), rows),
        "cell": _repeat_text(owner.cell, rows),
        "cluster_id": _repeat_text(owner.cluster_id, rows),
        "organization_id": _repeat_text(owner.organization_id, rows),
    }


def _column_over(buffer: bytes, kind: pa.DataType, rows: int) -> pa.Array:
    """A column over the reader's own bytes, without a copy.

    The reader's unsigned numbers are below 2^63 and its indexes below 2^31, so that signed types
    hold them. Raises `ValueError` where the bytes are not `rows` values.
    """
    if len(buffer) * 8 != rows * kind.bit_width:
        message = f"{len(buffer)} bytes are no {rows} values of {kind.bit_width} bits"
        raise ValueError(message)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)])


def _repeat_value(value: int, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows)


def _repeat_text(text: str, rows: int) -> pa.Array:
    places = pa.repeat(pa.scalar(0, pa.int32()), rows)
    return pa.DictionaryArray.from_arrays(places, pa.array([text], pa.string()))


def _text_column(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.string()).dictionary_encode()


def _optional_column(numbers: Sequence[int], kind: pa.DataType) -> pa.Array:
    """A column of numbers in which -1 becomes null."""
    return pa.array([None if number < 0 else number for number in numbers], kind)
