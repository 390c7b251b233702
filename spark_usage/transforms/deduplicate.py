"""Each usage row once, however often and in whatever order it is in the files.

Deduplicate before any filter on time: of two rows of one identity that differ in their window, a
filter would leave one, and the conflict would not be seen.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import AGREEING, DISTINCT_SCHEMA, IDENTITY
from spark_usage.transforms.inputs import is_incomplete
from spark_usage.transforms.versions import version_of

OWNER = "organization_id"
# The columns that must agree, without the owner. They have fixed width, so that Spark keeps their
# minimum and maximum in hash tables; with a text among them it would sort all rows.
COMPARED = ("window_start_ms", "window_end_ms", "quantity", "cumulative", "billed")
# Rows are shuffled by these columns of the identity, so that copies meet in one partition. Five are
# enough to distribute rows evenly.
MEETING = ("block", "lane_file", "partition", "incarnation", "topic_id")


def deduplicate_rows(rows: DataFrame) -> DataFrame:
    """One row for each identity: `DISTINCT_SCHEMA`. Correct where each cluster has one owner.

    Copies that disagree in their owner give one row for each owner. So the caller must look with
    `disputed_clusters`, and where there are any use `deduplicate_rows_in_doubt`. Where copies
    disagree, `agrees` is false, and the columns in which they should agree have no meaning. Where
    one of them lacks what its meter needs, `incomplete` is true.
    """
    slot = sf.when(sf.col("block").isNull(), sf.col("window_start_ms"))
    key = (*IDENTITY, "slot", OWNER)
    least = {name: sf.min(name).alias(name) for name in COMPARED}
    least["window_start_ms"] = sf.min("window_start_ms").alias("least_start_ms")
    most = [sf.max(name).alias(f"most_{name}") for name in COMPARED]
    return (
        rows.select(*IDENTITY, OWNER, slot.alias("slot"), *COMPARED, is_incomplete().alias("lacks"))
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
        # A row whose version says otherwise is incomplete.
        .withColumn("schema_version", version_of())
        .select(*DISTINCT_SCHEMA.names)
    )


def _agrees() -> Column:
    same = [sf.col(name).eqNullSafe(sf.col(f"most_{name}")) for name in COMPARED]
    # Minimum and maximum ignore nulls, so nulls are counted: none of the copies has a counter, or
    # all have.
    counters = sf.col("counters")
    return reduce(and_, same) & ((counters == 0) | (counters == sf.col("copies")))


def disputed_clusters(places: DataFrame) -> DataFrame:
    """The clusters whose rows name more than one organization: `cell`, `cluster_id`.

    `places` is any table with these columns and `organization_id`.
    """
    return (
        places.groupBy("cell", "cluster_id")
        .agg(sf.min(OWNER).alias("one"), sf.max(OWNER).alias("other"))
        .filter(sf.col("one") != sf.col("other"))
        .select("cell", "cluster_id")
    )


def deduplicate_rows_in_doubt(rows: DataFrame) -> DataFrame:
    """Like `deduplicate_rows`, and correct whatever owners the rows name; it takes longer."""
    agreeing = sf.struct(*AGREEING)
    slot = sf.when(sf.col("block").isNull(), sf.col("window_start_ms"))
    return (
        rows.groupBy(*IDENTITY, slot.alias("slot"))
        .agg(
            sf.min(agreeing).alias("least"),
            sf.max(agreeing).alias("most"),
            sf.count(sf.lit(1)).alias("copies"),
            sf.bool_or(is_incomplete()).alias("incomplete"),
        )
        .withColumn("agrees", sf.col("least").eqNullSafe(sf.col("most")))
        .select(
            *(
                sf.col(f"least.{name}" if name in AGREEING else name)
                for name in DISTINCT_SCHEMA.names
            )
        )
    )
