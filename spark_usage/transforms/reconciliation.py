"""Usage against what else is known: ingress against the log, egress against its own counters.

Each function returns what differs and nothing where all is well.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_usage.schemas import EGRESS, INGRESS, QUANTITY

PARTITION = ("cluster_id", "topic_id", "partition")
SERIES = ("cell", "cluster_id", "incarnation", "topic_id", "principal")


def metered_ingress(distinct: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Bytes written in [since, until) by partition: `PARTITION`, `metered_bytes` (decimal)."""
    start = sf.col("window_start_ms")
    of_period = (start >= since_ms) & (start < until_ms)
    return (
        distinct.filter(sf.col("agrees") & (sf.col("meter") == INGRESS) & of_period)
        .groupBy(*PARTITION)
        .agg(sf.sum(sf.col("quantity").cast(QUANTITY)).alias("metered_bytes"))
        .select(*PARTITION, "metered_bytes")
    )


def logged(log: DataFrame) -> DataFrame:
    """What the log says, once for each partition: entries of one partition are added up."""
    return (
        log.groupBy(*PARTITION)
        .agg(
            sf.sum(sf.col("bytes_least").cast(QUANTITY)).alias("bytes_least"),
            sf.sum(sf.col("bytes_most").cast(QUANTITY)).alias("bytes_most"),
        )
        .select(*PARTITION, "bytes_least", "bytes_most")
    )


def ingress_differences(metered: DataFrame, log: DataFrame) -> DataFrame:
    """Partitions whose metered bytes do not lie within what the log says.

    `PARTITION`, `kind`, `metered_bytes`, `bytes_least`, `bytes_most`. The kind is `not_in_log`,
    `not_metered`, `above_log` or `below_log`; what one side does not know is null.
    """
    metered_bytes = sf.col("metered_bytes")
    kind = (
        sf.when(sf.col("bytes_most").isNull(), "not_in_log")
        .when(metered_bytes.isNull() & (sf.col("bytes_least") > 0), "not_metered")
        .when(metered_bytes > sf.col("bytes_most"), "above_log")
        .when(metered_bytes < sf.col("bytes_least"), "below_log")
    )
    return (
        metered.join(log, list(PARTITION), "full_outer")
        .withColumn("kind", kind)
        .filter(sf.col("kind").isNotNull())
        .select(*PARTITION, "kind", "metered_bytes", "bytes_least", "bytes_most")
    )


def egress_steps(distinct: DataFrame) -> DataFrame:
    """Egress rows with the counter as it stood before: `SERIES`, `lane_file`, `block`,
    `quantity`, `cumulative`, and `before`, which is null in the first row of a series.

    A counter belongs to one principal and topic in one start of a broker, and begins at 0.
    """
    in_order = Window.partitionBy(*SERIES).orderBy("block")
    return (
        distinct.filter(sf.col("agrees") & (sf.col("meter") == EGRESS))
        .withColumn("before", sf.lag("cumulative").over(in_order))
        .select(*SERIES, "lane_file", "block", "quantity", "cumulative", "before")
    )


def egress_differences(steps: DataFrame) -> DataFrame:
    """Rows by which a counter did not grow by what the row says, from `egress_steps`.

    `SERIES`, `kind`, and the rest of the row. The kind is `counter_fell`, `usage_missing` (the
    counter grew by more: rows of it were not read, or set aside), `usage_above_counter` (it grew
    by less) or, in the first row, `starts_below_usage`.
    """
    grown = sf.col("cumulative") - sf.col("before")
    kind = _step_kind(grown, sf.col("quantity"))
    return (
        steps.withColumn("kind", kind)
        .filter(sf.col("kind").isNotNull())
        .select(*SERIES, "kind", "lane_file", "block", "quantity", "cumulative", "before")
    )


def _step_kind(grown: Column, quantity: Column) -> Column:
    return (
        sf.when(grown.isNull() & (sf.col("cumulative") < quantity), "starts_below_usage")
        .when(grown < 0, "counter_fell")
        .when(grown > quantity, "usage_missing")
        .when(grown < quantity, "usage_above_counter")
    )
