"""The shapes of what the jobs read and write, explicitly: no schema is ever inferred.

`USAGE_SCHEMA` is `metering.events.records.USAGE_SCHEMA` in Spark's words; a test holds them equal.
It is written out here so that a cluster needs nothing but this package.
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

SCHEMA_VERSION = 1

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

INGRESS = "ingress_bytes"
EGRESS = "egress_bytes"
LANE_METERS = (INGRESS, EGRESS)
TIME_METERS = ("storage_byte_minutes", "partition_minutes", "broker_seconds")
METERS = (*LANE_METERS, *TIME_METERS)

# Sums of any number of 64-bit quantities. One that does not fit ends the job (ANSI).
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

# What makes two rows one row; where `block` is null the window's start belongs to it. Columns with
# many values come first: rows are sorted by this key, and comparing ends at the first difference.
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
# In these, rows of one identity must agree; only the time of emission may differ.
AGREEING = tuple(name for name in USAGE_SCHEMA.names if name not in {*IDENTITY, "emitted_at_ms"})

# Usage rows once each, as `deduplicate` returns them.
DISTINCT_SCHEMA = StructType(
    [
        *(field for field in USAGE_SCHEMA if field.name != "emitted_at_ms"),
        StructField("copies", LongType(), nullable=False),
        StructField("agrees", BooleanType(), nullable=False),
        StructField("incomplete", BooleanType(), nullable=False),
    ]
)

# Rows of `hours/` and `days/`. An empty principal is none.
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

# Rows of `quarantine/`: those of the usage files as they were, and why they do not count.
QUARANTINE_SCHEMA = StructType([*USAGE_SCHEMA, StructField("reason", StringType(), nullable=False)])

# What the log says was written to a partition (`spark_usage.log_manifest`).
LOG_SCHEMA = StructType(
    [
        StructField("cluster_id", StringType(), nullable=False),
        StructField("topic_id", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("bytes_least", LongType(), nullable=False),
        StructField("bytes_most", LongType(), nullable=False),
    ]
)

# Of which clusters, or of which of their topics, the log says nothing.
UNKNOWN_SCHEMA = StructType(
    [
        StructField("cluster_id", StringType(), nullable=False),
        StructField("topic_id", StringType()),
    ]
)
