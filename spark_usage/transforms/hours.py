"""Usage by hour: first slices of everything that was read, then the hours of one day."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import DAY_MS, HOUR_MS, ROLLUP_SCHEMA
from spark_usage.transforms.inputs import hour_of, is_misplaced
from spark_usage.transforms.sums import split_halves, whole_sum
from spark_usage.transforms.versions import is_of_block, is_of_file

# The columns by which usage is summed: all of a roll-up's row but its window and quantities.
PLACE = ("cell", "cluster_id", "organization_id", "topic_id", "principal", "meter", "billed")


def hour_slices(distinct: DataFrame) -> DataFrame:
    """Sums of distinct usage rows of all days by hour, small enough to be persisted for the checks.

    Columns: `PLACE`, `window_start_ms` (the hour), `agrees`, `superseded`, `quantity`,
    `copied_quantity` (each quantity as often as it was read), the number of `identities` and of
    `copies`, how many identities are `incomplete` or `misplaced`, and how many are `of_blocks` or
    `of_files` of a lane. `distinct` has `superseded` where versions may be mixed.
    """
    if "superseded" not in distinct.columns:
        distinct = distinct.withColumn("superseded", sf.lit(False))
    copies = sf.col("copies")
    high, low = split_halves("quantity")
    return (
        distinct.withColumn("crosses", is_misplaced())
        .withColumn("principal", sf.coalesce("principal", sf.lit("")))
        .withColumn("window_start_ms", hour_of(sf.col("window_start_ms")))
        .groupBy(*PLACE, "window_start_ms", "agrees", "superseded")
        .agg(
            sf.sum(high).alias("high"),
            sf.sum(low).alias("low"),
            sf.sum(high * copies).alias("copied_high"),
            sf.sum(low * copies).alias("copied_low"),
            sf.count(sf.lit(1)).alias("identities"),
            sf.sum("copies").alias("copies"),
            sf.count_if("incomplete").alias("incomplete"),
            sf.count_if(sf.col("crosses")).alias("misplaced"),
            sf.count_if(is_of_block()).alias("of_blocks"),
            sf.count_if(is_of_file()).alias("of_files"),
        )
        .select(
            *PLACE,
            "window_start_ms",
            "agrees",
            "superseded",
            whole_sum("high", "low").alias("quantity"),
            whole_sum("copied_high", "copied_low").alias("copied_quantity"),
            "identities",
            "copies",
            "incomplete",
            "misplaced",
            "of_blocks",
            "of_files",
        )
    )


def sum_hours(slices: DataFrame, day_start_ms: int) -> DataFrame:
    """The rows of `hours/` (`ROLLUP_SCHEMA`): the slices that agree, are of the day, and count."""
    start = sf.col("window_start_ms")
    of_day = (start >= day_start_ms) & (start < day_start_ms + DAY_MS)
    return (
        slices.filter(sf.col("agrees") & ~sf.col("superseded") & of_day)
        .withColumn("window_end_ms", start + HOUR_MS)
        .withColumn("source_rows", sf.col("identities"))
        .select(*ROLLUP_SCHEMA.names)
    )
