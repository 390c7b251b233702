"""Reads a run's usage files and sums them, nothing more: `python -m tests.bench.scan KIND RUN`.

What `rollup` is compared with: the same files, all columns, no row compared with any other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import functions as sf

from spark_usage.schemas import USAGE_SCHEMA
from spark_usage.session import open_session


def spark_scan(paths: list[str]) -> int:
    """Spark, in the session that jobs have: counts the values of every column."""
    spark = open_session("scan")
    rows = spark.read.schema(USAGE_SCHEMA).parquet(*paths)
    counts = [sf.count(name) for name in USAGE_SCHEMA.names]
    (sums,) = rows.agg(sf.sum("quantity").alias("quantity"), *counts).collect()
    spark.stop()
    return int(sums["quantity"])


def pyarrow_scan(paths: list[str]) -> int:
    """Pyarrow, with as many threads as there are cores: brings every column into memory."""
    dataset: Any = ds.dataset(paths, format="parquet")
    return sum(int(pc.sum(batch["quantity"]).as_py() or 0) for batch in dataset.to_batches())


def main() -> None:
    """Prints the sum of all quantities."""
    kind, run = sys.argv[1:]
    manifest = json.loads(Path(run).read_text())
    paths = [f"{manifest['usage_root']}/{entry['key']}" for entry in manifest["inputs"]]
    print({"spark": spark_scan, "pyarrow": pyarrow_scan}[kind](paths))


if __name__ == "__main__":
    main()
