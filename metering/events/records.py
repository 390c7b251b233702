"""`usage_record`: the columns of a usage file, and which columns identify a row.

A row says how much of one meter was used in one window. Quantities are whole numbers: bytes,
byte-minutes, partition-minutes, seconds. Windows are [start, end) in milliseconds since 1970, UTC.

Rows of a lane (`ingress_bytes`, `egress_bytes`) are the same rows whichever agent makes them, and
however often. In version 1 the lane block that they come from identifies them. In version 2 they
have no block: a row is the sum over all blocks of a lane file in one minute, and file and minute
identify it. Of a lane file that has rows of version 2 those of version 1 do not count.

Rows of time (`storage_byte_minutes`, `partition_minutes`, `broker_seconds`) are of version 1 and
have no block. Their window's start identifies them, and a slot (`metering.events.slots`) fixes
their quantity once.
"""

from __future__ import annotations

import io
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq

from metering.events.errors import UsageFormatError

BLOCKS_VERSION, FILES_VERSION = 1, 2
RECORD_VERSIONS = (BLOCKS_VERSION, FILES_VERSION)
# The principal of the service itself: probes, samples, repairs. It is never billed. What people
# read and write by REST has a principal of theirs, `ApiKey:` or `Member:` with an id.
SERVICE_PRINCIPAL = "User:__freshet"
# The principal of what is counted together: nobody has this name.
OTHERS = "Others:*"


class Meter(StrEnum):
    """What is counted."""

    INGRESS_BYTES = "ingress_bytes"
    EGRESS_BYTES = "egress_bytes"
    STORAGE_BYTE_MINUTES = "storage_byte_minutes"
    PARTITION_MINUTES = "partition_minutes"
    BROKER_SECONDS = "broker_seconds"


LANE_METERS = (Meter.INGRESS_BYTES, Meter.EGRESS_BYTES)
TIME_METERS = (Meter.STORAGE_BYTE_MINUTES, Meter.PARTITION_MINUTES, Meter.BROKER_SECONDS)

USAGE_SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("cell", pa.string(), nullable=False),
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("organization_id", pa.string(), nullable=False),
        # The incarnation; null for storage and partition time.
        pa.field("incarnation", pa.int64()),
        pa.field("lane_file", pa.int64()),
        # The block's sequence number in its lane; null for all meters of time, and in version 2.
        pa.field("block", pa.int64()),
        # 32 hex digits; empty for `broker_seconds`.
        pa.field("topic_id", pa.string(), nullable=False),
        # Null for egress, which is counted by topic, and for `partition_minutes`.
        pa.field("partition", pa.int32()),
        pa.field("principal", pa.string()),
        pa.field("meter", pa.string(), nullable=False),
        pa.field("window_start_ms", pa.int64(), nullable=False),
        pa.field("window_end_ms", pa.int64(), nullable=False),
        pa.field("quantity", pa.int64(), nullable=False),
        # Egress only: the counter of (incarnation, topic, principal) at the block, or at the last
        # block of the file in the minute.
        pa.field("cumulative", pa.int64()),
        pa.field("billed", pa.bool_(), nullable=False),
        pa.field("emitted_at_ms", pa.int64(), nullable=False),
    ]
)
COLUMNS: tuple[str, ...] = tuple(USAGE_SCHEMA.names)

# Rows with the same values here are the same row. Where `block` is null, `window_start_ms` belongs
# to the identity too.
LANE_IDENTITY: tuple[str, ...] = (
    "cell",
    "cluster_id",
    "incarnation",
    "lane_file",
    "block",
    "topic_id",
    "partition",
    "principal",
    "meter",
)
TIME_IDENTITY: tuple[str, ...] = (*LANE_IDENTITY, "window_start_ms")
# Copies of a row may differ in these columns.
VOLATILE: tuple[str, ...] = ("emitted_at_ms",)
# Copies of a row must agree in these columns; otherwise all of them are quarantined.
AGREEING: tuple[str, ...] = tuple(
    name for name in COLUMNS if name not in {*LANE_IDENTITY, *VOLATILE}
)


def encode_usage(table: pa.Table) -> bytes:
    """A usage file's bytes: Parquet with zstd, and text columns as dictionaries.

    `table` has the columns of `USAGE_SCHEMA` in its order; text columns may be dictionaries.
    Raises `UsageFormatError` for other columns.
    """
    _check_columns(table.schema)
    buffer = io.BytesIO()
    # Without Arrow's own schema every reader sees a dictionary as strings. Statistics would take a
    # quarter of the time, and nobody needs them, because every job reads whole files.
    pq.write_table(table, buffer, compression="zstd", store_schema=False, write_statistics=False)
    return buffer.getvalue()


def decode_usage(data: bytes) -> pa.Table:
    """The rows of a usage file, with `USAGE_SCHEMA`. Raises `UsageFormatError`."""
    try:
        table = pq.read_table(io.BytesIO(data))
        _check_columns(table.schema)
        return table.cast(USAGE_SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"not a usage file: {error}"
        raise UsageFormatError(message) from error


def count_rows(data: bytes) -> int:
    """How many rows a usage file says that it has. Raises `UsageFormatError`."""
    try:
        facts = pq.read_metadata(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        message = f"not a usage file: {error}"
        raise UsageFormatError(message) from error
    _check_columns(facts.schema.to_arrow_schema())
    return int(facts.num_rows)


def _check_columns(schema: pa.Schema) -> None:
    if tuple(schema.names) != COLUMNS:
        message = f"a usage file has the columns {COLUMNS}, this one {tuple(schema.names)}"
        raise UsageFormatError(message)
