"""Usage rows once each, however often and in whatever order they were written down.

This comes before every filter on time: of two rows of one identity that differ in their window, a
filter would leave one, and the conflict would pass for a row.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import AGREEING, DISTINCT_SCHEMA, IDENTITY, SCHEMA_VERSION
from spark_usage.transforms.inputs import incomplete

OWNER = "organization_id"
# Sums of columns of fixed width are kept in place; a text would have all rows be sorted.
COMPARED = ("window_start_ms", "window_end_ms", "quantity", "cumulative", "billed")
# Rows of one identity meet in one partition. Four columns tell nearly all of them apart.
MEETING = ("block", "partition", "incarnation", "topic_id")


def deduplicate(rows: DataFrame) -> DataFrame:
    """One row for each identity: `DISTINCT_SCHEMA`. Right where each cluster has one owner.

    Of rows that disagree in their owner there are as many as owners: who calls looks with
    `disputed`, and takes `deduplicate_in_doubt` then. Where the copies disagree `agrees` is
    false, and what they should agree in is of no use. Where one of them lacks what its meter needs,
    `incomplete` is true.
    """
    slot = sf.when(sf.col("block").isNull(), sf.col("window_start_ms"))
    key = (*IDENTITY, "slot", OWNER)
    least = {name: sf.min(name).alias(name) for name in COMPARED}
    least["window_start_ms"] = sf.min("window_start_ms").alias("least_start_ms")
    most = [sf.max(name).alias(f"most_{name}") for name in COMPARED]
    return (
        rows.select(*IDENTITY, OWNER, slot.alias("slot"), *COMPARED, incomplete().alias("lacks"))
        .repartition(*MEETING)
        .groupBy(*key)
        .agg(
            *least.values(),
            *most,
            sf.count(sf.lit(1)).alias("copies"),
            sf.count("cumulative").alias("counters"),
            sf.max("lacks").alias("incomplete"),
        )
        .withColumnRenamed("least_start_ms", "window_start_ms")
        .withColumn("agrees", _agrees())
        # A row of another version is incomplete.
        .withColumn("schema_version", sf.lit(SCHEMA_VERSION))
        .select(*DISTINCT_SCHEMA.names)
    )


def _agrees() -> Column:
    same = [sf.col(name).eqNullSafe(sf.col(f"most_{name}")) for name in COMPARED]
    # The least and the most pass nulls over.
    counters = sf.col("counters")
    return reduce(and_, same) & ((counters == 0) | (counters == sf.col("copies")))


def disputed(places: DataFrame) -> DataFrame:
    """The clusters that are said to be of more than one organisation: `cell`, `cluster_id`.

    `places`: anything with these and `organization_id`.
    """
    return (
        places.groupBy("cell", "cluster_id")
        .agg(sf.min(OWNER).alias("one"), sf.max(OWNER).alias("other"))
        .filter(sf.col("one") != sf.col("other"))
        .select("cell", "cluster_id")
    )


def deduplicate_in_doubt(rows: DataFrame) -> DataFrame:
    """As `deduplicate`, whatever the rows say of owners; it takes longer."""
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
