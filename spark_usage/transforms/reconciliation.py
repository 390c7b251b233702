"""Compares ingress with the log, and egress with its own counters.

The functions return tables of differences, which are empty where everything is equal.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_usage.schemas import EGRESS, INGRESS, QUANTITY

PARTITION = ("cluster_id", "topic_id", "partition")
CLUSTER_FIGURES = (
    *("metered_bytes", "bytes_least", "bytes_most", "unknown_bytes"),
    *("partitions", "differing"),
)
SERIES = ("cell", "cluster_id", "incarnation", "topic_id", "principal")
# The order of a counter's values.
STEP = ("lane_file", "window_start_ms", "block")


def metered_ingress(distinct: DataFrame, since_ms: int, until_ms: int) -> DataFrame:
    """Metered bytes by partition: `PARTITION`, `metered_bytes` (decimal).

    All rows of a partition in a lane file count if its last row there is of [since, until). The log
    counts segments by the same rule.
    """
    last = sf.col("last_ms")
    return (
        distinct.filter(sf.col("agrees") & (sf.col("meter") == INGRESS))
        .groupBy(*PARTITION, "incarnation", "lane_file")
        .agg(
            sf.max("window_start_ms").alias("last_ms"),
            sf.sum(sf.col("quantity").cast(QUANTITY)).alias("file_bytes"),
        )
        .filter((last >= since_ms) & (last < until_ms))
        .groupBy(*PARTITION)
        .agg(sf.sum("file_bytes").cast(QUANTITY).alias("metered_bytes"))
        .select(*PARTITION, "metered_bytes")
    )


def logged_bytes(log: DataFrame) -> DataFrame:
    """The bytes of the log with one row for each partition: its entries are added up."""
    return (
        log.groupBy(*PARTITION)
        .agg(
            sf.sum(sf.col("bytes_least").cast(QUANTITY)).alias("bytes_least"),
            sf.sum(sf.col("bytes_most").cast(QUANTITY)).alias("bytes_most"),
        )
        .select(*PARTITION, "bytes_least", "bytes_most")
    )


def compared_ingress(metered: DataFrame, log: DataFrame, unknown: DataFrame) -> DataFrame:
    """Every partition of either side, and how the sides differ.

    Columns: `PARTITION`, `known` (false where nobody knows what the log held), `kind`,
    `metered_bytes`, `bytes_least`, `bytes_most`. The kind is `not_in_log`, `not_metered`,
    `above_log` or `below_log`, and null where nothing differs. Bytes are null where a side does not
    have the partition.
    """
    metered_bytes = sf.col("metered_bytes")
    kind = (
        sf.when(~sf.col("known"), None)
        .when(sf.col("bytes_most").isNull(), "not_in_log")
        .when(metered_bytes.isNull() & (sf.col("bytes_least") > 0), "not_metered")
        .when(metered_bytes > sf.col("bytes_most"), "above_log")
        .when(metered_bytes < sf.col("bytes_least"), "below_log")
    )
    clusters = _marked_keys(unknown.filter(sf.col("topic_id").isNull()), "cluster_id")
    topics = _marked_keys(unknown.filter(sf.col("topic_id").isNotNull()), "cluster_id", "topic_id")
    of_cluster, of_topic = sf.col("unknown_cluster_id"), sf.col("unknown_topic_id")
    return (
        metered.join(log, list(PARTITION), "full_outer")
        .join(sf.broadcast(clusters), ["cluster_id"], "left")
        .join(sf.broadcast(topics), ["cluster_id", "topic_id"], "left")
        .withColumn("known", of_cluster.isNull() & of_topic.isNull())
        .withColumn("kind", kind)
        .select(*PARTITION, "known", "kind", "metered_bytes", "bytes_least", "bytes_most")
    )


def _marked_keys(unknown: DataFrame, *key: str) -> DataFrame:
    """The distinct keys with a column `unknown_<last key>`, null where a left join has no match."""
    return unknown.select(*key).distinct().withColumn(f"unknown_{key[-1]}", sf.lit(1))


def ingress_by_cluster(compared: DataFrame) -> DataFrame:
    """Sums by cluster: `cluster_id` and `CLUSTER_FIGURES`.

    The first three figures sum over known partitions; `unknown_bytes` are metered bytes of the
    others. `partitions` and `differing` are numbers of partitions.
    """
    is_known = sf.col("known")

    def total(what: str, where: Column) -> Column:
        return sf.coalesce(sf.sum(sf.when(where, sf.col(what))), sf.lit(0)).cast(QUANTITY)

    return (
        compared.groupBy("cluster_id")
        .agg(
            total("metered_bytes", is_known).alias("metered_bytes"),
            total("bytes_least", is_known).alias("bytes_least"),
            total("bytes_most", is_known).alias("bytes_most"),
            total("metered_bytes", ~is_known).alias("unknown_bytes"),
            sf.count(sf.lit(1)).alias("partitions"),
            sf.count("kind").alias("differing"),
        )
        .select("cluster_id", *CLUSTER_FIGURES)
    )


def egress_steps(distinct: DataFrame) -> DataFrame:
    """Egress rows with the counter's value before: `SERIES`, `STEP`, `quantity`, `cumulative`, and
    `before`, which is null in the first row of a series.

    A counter belongs to one principal and topic of one incarnation, and begins at 0.
    """
    in_order = Window.partitionBy(*SERIES).orderBy(*STEP)
    return (
        distinct.filter(sf.col("agrees") & (sf.col("meter") == EGRESS))
        .withColumn("before", sf.lag("cumulative").over(in_order))
        .select(*SERIES, *STEP, "quantity", "cumulative", "before")
    )


def egress_differences(steps: DataFrame) -> DataFrame:
    """The rows of `egress_steps` at which the counter did not grow by the row's quantity.

    Columns: `SERIES`, `kind`, and the rest of the row. The kind is `counter_fell`, `usage_missing`
    (the counter grew by more: rows are missing or quarantined), `usage_above_counter` (it grew by
    less) or, in the first row, `starts_below_usage`.
    """
    grown = sf.col("cumulative") - sf.col("before")
    kind = _step_kind(grown, sf.col("quantity"))
    return (
        steps.withColumn("kind", kind)
        .filter(sf.col("kind").isNotNull())
        .select(*SERIES, "kind", *STEP, "quantity", "cumulative", "before")
    )


def _step_kind(grown: Column, quantity: Column) -> Column:
    return (
        sf.when(grown.isNull() & (sf.col("cumulative") < quantity), "starts_below_usage")
        .when(grown < 0, "counter_fell")
        .when(grown > quantity, "usage_missing")
        .when(grown < quantity, "usage_above_counter")
    )
