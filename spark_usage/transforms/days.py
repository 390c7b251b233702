"""Usage by day, which is nothing but the sum of its hours."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import DAY_MS, QUANTITY, ROLLUP_SCHEMA
from spark_usage.transforms.hours import PLACE


def sum_days(hours: DataFrame, day_start_ms: int) -> DataFrame:
    """The rows of `days/` from those of `hours/` of the same day; both have `ROLLUP_SCHEMA`."""
    return (
        hours.groupBy(*PLACE)
        .agg(
            sf.sum("quantity").cast(QUANTITY).alias("quantity"),
            sf.sum("source_rows").alias("source_rows"),
        )
        .withColumn("window_start_ms", sf.lit(day_start_ms).cast("long"))
        .withColumn("window_end_ms", sf.lit(day_start_ms + DAY_MS).cast("long"))
        .select(*ROLLUP_SCHEMA.names)
    )
