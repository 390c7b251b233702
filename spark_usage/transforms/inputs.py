"""Looks at usage files before their rows count: digests of files, and profiles of their rows."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import (
    BLOCKS_VERSION,
    EGRESS,
    FILES_VERSION,
    HOUR_MS,
    INGRESS,
    LANE_METERS,
    METERS,
    QUANTITY,
    TIME_METERS,
    USAGE_SCHEMA,
)
from spark_usage.transforms.sums import split_halves


def file_digests(files: DataFrame) -> DataFrame:
    """`file` and `sha256` (64 hex digits), from Spark's source `binaryFile`."""
    return files.select(
        sf.col("_metadata.file_path").alias("file"),
        sf.sha2(sf.col("content"), 256).alias("sha256"),
    )


def profile_files(rows: DataFrame) -> DataFrame:
    """What each file holds, from usage rows with a column `file`. It reads only two other columns.

    Columns: `file`, `meter`, `rows`, `quantity` (decimal), and how many rows are `negative`.
    """
    return (
        rows.groupBy("file", "meter")
        .agg(
            sf.count(sf.lit(1)).alias("rows"),
            sf.sum(sf.col("quantity").cast(QUANTITY)).alias("quantity"),
            sf.count_if(sf.col("quantity") < 0).alias("negative"),
        )
        .select("file", "meter", "rows", "quantity", "negative")
    )


def count_columns() -> list[Column]:
    """Aggregates over all rows, to be observed while they are read.

    For each known meter `<meter>_rows` and the sums of the halves of its quantities, `<meter>_high`
    and `<meter>_low`; `other_rows`, of other meters or none; and the number of `negative` rows.
    """
    high, low = split_halves("quantity")
    is_known = sf.coalesce(sf.col("meter").isin(*METERS), sf.lit(False))
    columns = [
        sf.count_if(~is_known).alias("other_rows"),
        sf.count_if(sf.col("quantity") < 0).alias("negative"),
    ]
    for meter in METERS:
        of_meter = sf.col("meter") == meter
        columns += [
            sf.count_if(of_meter).alias(f"{meter}_rows"),
            sf.sum(sf.when(of_meter, high)).alias(f"{meter}_high"),
            sf.sum(sf.when(of_meter, low)).alias(f"{meter}_low"),
        ]
    return columns


def flawed_files(rows: DataFrame) -> DataFrame:
    """`file` and the number of its `incomplete` rows, from usage rows with a column `file`."""
    return (
        rows.groupBy("file")
        .agg(sf.count_if(is_incomplete()).alias("incomplete"))
        .select("file", "incomplete")
    )


def is_incomplete() -> Column:
    """Whether a row lacks a value that its meter needs, or is of an unknown schema version.

    A meter needs the values that identify its rows and that `reconcile` compares. Rows of lanes
    have a block in version 1 alone; rows of time are of version 1. Unknown meters need only the
    required columns.
    """
    required = [field.name for field in USAGE_SCHEMA if not field.nullable]
    of_lane, of_time = (sf.col("meter").isin(*meters) for meters in (LANE_METERS, TIME_METERS))
    of_file = sf.col("schema_version") == FILES_VERSION
    needed = [
        (sf.lit(True), required),
        (of_lane, ("incarnation", "lane_file", "principal")),
        (of_lane & ~of_file, ("block",)),
        (sf.col("meter") == INGRESS, ("partition",)),
        (sf.col("meter") == EGRESS, ("cumulative",)),
    ]
    lacking = [
        holds & reduce(or_, (sf.col(name).isNull() for name in names)) for holds, names in needed
    ]
    placed = sf.col("block").isNotNull()
    wrong = [
        of_time & (placed | sf.col("lane_file").isNotNull() | of_file),
        of_lane & of_file & placed,
        ~sf.col("schema_version").isin(BLOCKS_VERSION, FILES_VERSION),
    ]
    # A comparison with null is null, and `null OR false` is null: such a row would not be counted.
    return reduce(or_, (sf.coalesce(flaw, sf.lit(False)) for flaw in (*lacking, *wrong)))


def is_misplaced() -> Column:
    """Whether a row's window is empty or does not lie within one hour."""
    start, end = sf.col("window_start_ms"), sf.col("window_end_ms")
    return (start < 0) | (end <= start) | (hour_of(start) != hour_of(end - 1))


def hour_of(at_ms: Column) -> Column:
    """The start of the hour of a time; both in milliseconds since 1970."""
    return at_ms - at_ms % HOUR_MS


def known_meter(meter: str | None) -> bool:
    """Whether this release knows a meter."""
    return meter in METERS
