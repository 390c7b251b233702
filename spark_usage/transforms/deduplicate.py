"""Usage rows once each, however often and in whatever order they were written down.

This comes before every filter on time: of two rows of one identity that differ in their window, a
filter would leave one, and the conflict would pass for a row.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import AGREEING, DISTINCT_SCHEMA, IDENTITY
from spark_usage.transforms.inputs import incomplete


def deduplicate(rows: DataFrame) -> DataFrame:
    """One row for each identity: `DISTINCT_SCHEMA`.

    Where the copies disagree `agrees` is false, and what they should agree in is of no use. Where
    one of them lacks what its meter needs, `incomplete` is true.
    """
    said = sf.struct(*AGREEING)
    slot = sf.when(sf.col("block").isNull(), sf.col("window_start_ms"))
    return (
        rows.groupBy(*IDENTITY, slot.alias("slot"))
        .agg(
            sf.min(said).alias("least"),
            sf.max(said).alias("most"),
            sf.count(sf.lit(1)).alias("copies"),
            sf.bool_or(incomplete()).alias("incomplete"),
        )
        .withColumn("agrees", sf.col("least").eqNullSafe(sf.col("most")))
        .select(
            *(
                sf.col(f"least.{name}" if name in AGREEING else name)
                for name in DISTINCT_SCHEMA.names
            )
        )
    )
