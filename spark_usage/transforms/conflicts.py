"""Rows that contradict each other. None of them counts; all of them are kept for people to see."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import IDENTITY, QUARANTINE_SCHEMA

REASON = "conflict"


def conflicting_rows(rows: DataFrame, distinct: DataFrame) -> DataFrame:
    """The unchanged usage rows of every identity whose copies disagree: `QUARANTINE_SCHEMA`.

    `distinct` is the result of `deduplicate_rows` for the same rows.
    """
    slot = sf.when(sf.col("block").isNull(), sf.col("window_start_ms"))
    keyed = rows.withColumn("slot", slot).alias("row")
    disagreeing = distinct.filter(~sf.col("agrees")).withColumn("slot", slot).alias("named")
    same = reduce(
        and_,
        (sf.col(f"row.{name}").eqNullSafe(sf.col(f"named.{name}")) for name in (*IDENTITY, "slot")),
    )
    return (
        keyed.join(sf.broadcast(disagreeing), same, "left_semi")
        .withColumn("reason", sf.lit(REASON))
        .select(*QUARANTINE_SCHEMA.names)
    )
