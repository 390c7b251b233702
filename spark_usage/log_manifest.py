"""The bytes that the log holds, in a JSON file that the caller of `reconcile` writes.

```json
{"version": 1, "since_ms": 0, "until_ms": 1774828800000, "partitions": [
  {"cluster_id": "…", "topic_id": "…", "partition": 0, "bytes_least": 1000, "bytes_most": 1200}],
 "unknown": [{"cluster_id": "…", "topic_id": null}]}
```

Bytes are those of record batches. A segment holds what one lane file has of a partition, and counts
for [since, until) if its last block was written then. Usage can be added up by the same rule, so
both sides are equal to the byte. `bytes_least` and `bytes_most` are bounds; where bytes are known
exactly, the two are equal. Clusters in `unknown`, or topics of theirs, are not compared, because
nobody knows what the log held of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from spark_usage.errors import JobError
from spark_usage.schemas import LOG_SCHEMA, UNKNOWN_SCHEMA
from spark_usage.storage import Storage, literal_path

VERSION = 1

_FILE_SCHEMA = StructType(
    [
        StructField("version", IntegerType()),
        StructField("since_ms", LongType()),
        StructField("until_ms", LongType()),
        StructField("partitions", ArrayType(LOG_SCHEMA)),
        StructField("unknown", ArrayType(UNKNOWN_SCHEMA)),
    ]
)


@dataclass(frozen=True, slots=True)
class LogManifest:
    """Bytes of the log by partition (`LOG_SCHEMA`), for the period [since, until) in ms since 1970.

    `unknown` has a row for each cluster and each topic that is not compared (`UNKNOWN_SCHEMA`).
    """

    since_ms: int
    until_ms: int
    partitions: DataFrame
    unknown: DataFrame


def read_log(spark: SparkSession, path: str) -> LogManifest:
    """Reads a log manifest. Raises `JobError` where the file is missing or is no such manifest."""
    if not Storage(spark).exists(path):
        message = f"there is no file {path}"
        raise JobError(message)
    reader = spark.read.schema(_FILE_SCHEMA).option("multiLine", "true").option("mode", "FAILFAST")
    file = reader.json(literal_path(path))
    partitions = file.select(sf.explode("partitions").alias("entry")).select("entry.*")
    unknown = file.select(sf.explode("unknown").alias("entry")).select("entry.*")
    names = LOG_SCHEMA.names
    lacking = reduce(or_, (sf.col(name).isNull() for name in names))
    try:
        # The size of a missing list is null, so that it differs from an empty one.
        lists = [sf.size(name) for name in ("partitions", "unknown")]
        heads = file.select("version", "since_ms", "until_ms", *lists).collect()
        incomplete = partitions.filter(lacking).count()
        incomplete += unknown.filter(sf.col("cluster_id").isNull()).count()
    except Py4JJavaError as error:
        message = f"not a log manifest: {error.java_exception.getMessage()}"
        raise JobError(message) from error
    if len(heads) != 1 or None in tuple(heads[0]) or heads[0]["version"] != VERSION or incomplete:
        message = f"not a log manifest of version {VERSION}: {heads}, {incomplete} incomplete"
        raise JobError(message)
    return LogManifest(
        heads[0]["since_ms"],
        heads[0]["until_ms"],
        partitions.select(*names),
        unknown.select(*UNKNOWN_SCHEMA.names),
    )
