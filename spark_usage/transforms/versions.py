"""Which version of its rows bills a lane file.

Rows of version 2 are sums over a whole lane file, those of version 1 are of its blocks. After an
upgrade of agents, or a way back, a lane file may have both. Then the sums count alone, since they
hold all of it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_usage.schemas import BLOCKS_VERSION, FILES_VERSION, LANE_METERS

LANE_FILE = ("cell", "cluster_id", "incarnation", "lane_file")


def version_of() -> Column:
    """The version of a row that is complete, by what identifies it."""
    of_file = sf.col("block").isNull() & sf.col("lane_file").isNotNull()
    return sf.when(of_file, FILES_VERSION).otherwise(BLOCKS_VERSION)


def is_of_file() -> Column:
    """Whether a row of `DISTINCT_SCHEMA` is a sum over a lane file."""
    return sf.col("schema_version") == FILES_VERSION


def is_of_block() -> Column:
    """Whether a row of `DISTINCT_SCHEMA` is of a block of a lane."""
    return (sf.col("schema_version") == BLOCKS_VERSION) & sf.col("meter").isin(*LANE_METERS)


def mark_superseded(distinct: DataFrame) -> DataFrame:
    """Distinct rows with a column `superseded`: rows of blocks of a file that is summed up too."""
    files = distinct.filter(is_of_file()).select(*LANE_FILE).distinct()
    marked = files.withColumn("is_summed", sf.lit(True))
    superseded = is_of_block() & sf.coalesce(sf.col("is_summed"), sf.lit(False))
    return (
        distinct.join(marked, list(LANE_FILE), "left")
        .withColumn("superseded", superseded)
        .select(*distinct.columns, "superseded")
    )
