"""What usage files are, before their rows count: digests of files, and a profile of their rows."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import (
    EGRESS,
    HOUR_MS,
    INGRESS,
    LANE_METERS,
    METERS,
    QUANTITY,
    SCHEMA_VERSION,
    TIME_METERS,
    USAGE_SCHEMA,
)
from spark_usage.transforms.sums import halves


def digests(files: DataFrame) -> DataFrame:
    """From Spark's `binaryFile`: `file`, `sha256` (64 hex digits)."""
    return files.select(
        sf.col("_metadata.file_path").alias("file"),
        sf.sha2(sf.col("content"), 256).alias("sha256"),
    )


def profile(rows: DataFrame) -> DataFrame:
    """From usage rows with a column `file`: what each file holds, from two columns alone.

    `file`, `meter`, `rows`, `quantity` (decimal), and how many of the rows are `negative`.
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


def counts() -> list[Column]:
    """What all rows hold together, counted as they are read, before anything is done with them.

    Of each known meter `<meter>_rows` and the sums of the halves of its quantities, `<meter>_high`
    and `<meter>_low`; `other_rows` of other meters or none; and `negative`, of all.
    """
    high, low = halves("quantity")
    known = sf.coalesce(sf.col("meter").isin(*METERS), sf.lit(False))
    found = [
        sf.count_if(~known).alias("other_rows"),
        sf.count_if(sf.col("quantity") < 0).alias("negative"),
    ]
    for meter in METERS:
        of_meter = sf.col("meter") == meter
        found += [
            sf.count_if(of_meter).alias(f"{meter}_rows"),
            sf.sum(sf.when(of_meter, high)).alias(f"{meter}_high"),
            sf.sum(sf.when(of_meter, low)).alias(f"{meter}_low"),
        ]
    return found


def flaws(rows: DataFrame) -> DataFrame:
    """From usage rows with a column `file`: `file`, and how many of its rows are `incomplete`."""
    return (
        rows.groupBy("file")
        .agg(sf.count_if(incomplete()).alias("incomplete"))
        .select("file", "incomplete")
    )


def incomplete() -> Column:
    """A row that lacks what its meter needs to be told from others. Unknown meters need nothing."""
    required = [field.name for field in USAGE_SCHEMA if not field.nullable]
    lane = ("incarnation", "lane_file", "block", "principal")
    needed = [
        (sf.lit(True), required),
        (sf.col("meter").isin(*LANE_METERS), lane),
        (sf.col("meter") == INGRESS, ("partition",)),
        (sf.col("meter") == EGRESS, ("cumulative",)),
    ]
    lacking = [
        holds & reduce(or_, (sf.col(name).isNull() for name in names)) for holds, names in needed
    ]
    of_time = sf.col("meter").isin(*TIME_METERS) & sf.col("block").isNotNull()
    other = sf.col("schema_version") != SCHEMA_VERSION
    # A comparison with null is null, which would hide what is lacking.
    return reduce(or_, (sf.coalesce(each, sf.lit(False)) for each in (*lacking, of_time, other)))


def misplaced() -> Column:
    """A row whose window is empty or does not lie within one hour."""
    start, end = sf.col("window_start_ms"), sf.col("window_end_ms")
    return (start < 0) | (end <= start) | (hour_of(start) != hour_of(end - 1))


def hour_of(at_ms: Column) -> Column:
    """The start of the hour of a time, in milliseconds."""
    return at_ms - at_ms % HOUR_MS


def known_meter(meter: str | None) -> bool:
    """Tells whether this release knows how to sum a meter."""
    return meter in METERS
