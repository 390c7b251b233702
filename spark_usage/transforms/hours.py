"""Usage by hour: first of everything that was read, then of one day."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import DAY_MS, HOUR_MS, ROLLUP_SCHEMA
from spark_usage.transforms.inputs import hour_of, misplaced
from spark_usage.transforms.sums import halves, whole

# What usage is summed over: all that a row of a roll-up says beside its quantity.
PLACE = ("cell", "cluster_id", "organization_id", "topic_id", "principal", "meter", "billed")


def hour_slices(distinct: DataFrame) -> DataFrame:
    """Sums of distinct usage rows of any day, small enough to be kept while a run checks itself.

    `PLACE`, `window_start_ms` (the hour), `agrees`, `quantity`, `copied_quantity` (each quantity
    as often as it was read), `identities`, `copies`, and of the identities how many are
    `incomplete` or `misplaced`.
    """
    copies = sf.col("copies")
    high, low = halves("quantity")
    return (
        distinct.withColumn("crosses", misplaced())
        .withColumn("principal", sf.coalesce("principal", sf.lit("")))
        .withColumn("window_start_ms", hour_of(sf.col("window_start_ms")))
        .groupBy(*PLACE, "window_start_ms", "agrees")
        .agg(
            sf.sum(high).alias("high"),
            sf.sum(low).alias("low"),
            sf.sum(high * copies).alias("copied_high"),
            sf.sum(low * copies).alias("copied_low"),
            sf.count(sf.lit(1)).alias("identities"),
            sf.sum("copies").alias("copies"),
            sf.count_if("incomplete").alias("incomplete"),
            sf.count_if(sf.col("crosses")).alias("misplaced"),
        )
        .select(
            *PLACE,
            "window_start_ms",
            "agrees",
            whole("high", "low").alias("quantity"),
            whole("copied_high", "copied_low").alias("copied_quantity"),
            "identities",
            "copies",
            "incomplete",
            "misplaced",
        )
    )


def hours(slices: DataFrame, day_start_ms: int) -> DataFrame:
    """The rows of a day's `hours/` (`ROLLUP_SCHEMA`): of `hour_slices` what agrees, of the day."""
    start = sf.col("window_start_ms")
    of_day = (start >= day_start_ms) & (start < day_start_ms + DAY_MS)
    return (
        slices.filter(sf.col("agrees") & of_day)
        .withColumn("window_end_ms", start + HOUR_MS)
        .withColumn("source_rows", sf.col("identities"))
        .select(*ROLLUP_SCHEMA.names)
    )
