"""The schemas of everything that the jobs read and write. No schema is ever inferred.

`USAGE_SCHEMA` is `metering.events.records.USAGE_SCHEMA` in Spark's types; a test keeps them equal.
It is repeated here so that a Spark cluster needs nothing but this package.
"""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

# Of rows: one of a block of a lane, or of time; and the sum over a lane file in one minute.
BLOCKS_VERSION, FILES_VERSION = 1, 2

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

INGRESS = "ingress_bytes"
EGRESS = "egress_bytes"
LANE_METERS = (INGRESS, EGRESS)
TIME_METERS = ("storage_byte_minutes", "partition_minutes", "broker_seconds")
METERS = (*LANE_METERS, *TIME_METERS)

# Holds sums of any realistic number of 64-bit quantities. A greater sum ends the job (ANSI mode).
QUANTITY = DecimalType(38, 0)

USAGE_SCHEMA = StructType(
    [
        StructField("schema_version", IntegerType(), nullable=False),
        StructField("cell", StringType(), nullable=False),
        StructField("cluster_id", StringType(), nullable=False),
        StructField("organization_id", StringType(), nullable=False),
        StructField("incarnation", LongType()),
        StructField("lane_file", LongType()),
        StructField("block", LongType()),
        StructField("topic_id", StringType(), nullable=False),
        StructField("partition", IntegerType()),
        StructField("principal", StringType()),
        StructField("meter", StringType(), nullable=False),
        StructField("window_start_ms", LongType(), nullable=False),
        StructField("window_end_ms", LongType(), nullable=False),
        StructField("quantity", LongType(), nullable=False),
        StructField("cumulative", LongType()),
        StructField("billed", BooleanType(), nullable=False),
        StructField("emitted_at_ms", LongType(), nullable=False),
    ]
)

# Rows with the same values here are the same row; where `block` is null, the window's start belongs
# to the identity too. Columns with many values come first: rows are sorted by this key, and a
# comparison ends at the first difference.
IDENTITY = (
    "block",
    "partition",
    "incarnation",
    "lane_file",
    "topic_id",
    "principal",
    "meter",
    "cluster_id",
    "cell",
)
# Rows with the same identity must agree in these columns; only the time of emission may differ.
AGREEING = tuple(name for name in USAGE_SCHEMA.names if name not in {*IDENTITY, "emitted_at_ms"})

# Each usage row once, as `deduplicate_rows` returns it.
DISTINCT_SCHEMA = StructType(
    [
        *(field for field in USAGE_SCHEMA if field.name != "emitted_at_ms"),
        StructField("copies", LongType(), nullable=False),
        StructField("agrees", BooleanType(), nullable=False),
        StructField("incomplete", BooleanType(), nullable=False),
    ]
)

# Rows of `hours/` and `days/`. The empty principal stands for none.
ROLLUP_SCHEMA = StructType(
    [
        StructField("cell", StringType(), nullable=False),
        StructField("cluster_id", StringType(), nullable=False),
        StructField("organization_id", StringType(), nullable=False),
        StructField("topic_id", StringType(), nullable=False),
        StructField("principal", StringType(), nullable=False),
        StructField("meter", StringType(), nullable=False),
        StructField("window_start_ms", LongType(), nullable=False),
        StructField("window_end_ms", LongType(), nullable=False),
        StructField("quantity", QUANTITY, nullable=False),
        StructField("billed", BooleanType(), nullable=False),
        StructField("source_rows", LongType(), nullable=False),
    ]
)

# Rows of `quarantine/`: the usage files' rows as they are, and why they do not count.
QUARANTINE_SCHEMA = StructType([*USAGE_SCHEMA, StructField("reason", StringType(), nullable=False)])

# Bytes of a partition by the log (`spark_usage.log_manifest`).
LOG_SCHEMA = StructType(
    [
        StructField("cluster_id", StringType(), nullable=False),
        StructField("topic_id", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("bytes_least", LongType(), nullable=False),
        StructField("bytes_most", LongType(), nullable=False),
    ]
)

# Clusters, or topics of them, of which nobody knows what the log held; a null topic means all.
UNKNOWN_SCHEMA = StructType(
    [
        StructField("cluster_id", StringType(), nullable=False),
        StructField("topic_id", StringType()),
    ]
)
