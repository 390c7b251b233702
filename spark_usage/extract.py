"""From the inputs of a run to rows that may count: damaged files are found, named and left out.

A file is damaged when it is missing, is not the file of its manifest (size, SHA-256), cannot be
read as Parquet, or holds other rows than its manifest says or rows that lack their identity. None
of that ends a run: it ends in the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_usage.progress import Progress
from spark_usage.run_manifest import Input, RunManifest
from spark_usage.schemas import USAGE_SCHEMA
from spark_usage.storage import Storage, literal_path
from spark_usage.transforms.inputs import digests, known_meter, profile

T = TypeVar("T")

# How Spark says that a file is at fault, and where it fails on pages that make no sense.
_FILE_FAULTS = ("FAILED_READ_FILE", "org.apache.parquet.", "datasources.parquet.")
_OWN_FAULTS = ("OutOfMemoryError",)


@dataclass(frozen=True, slots=True)
class Damage:
    """An input that was left out, and why."""

    key: str
    reason: str
    detail: str


@dataclass(slots=True)
class Content:
    """What was read: `totals` and `rows` by meter, and counts of rows that break a rule."""

    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    totals: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    negative: int = 0
    misplaced: int = 0

    @property
    def row_count(self) -> int:
        """Rows of all meters."""
        return sum(self.rows.values())

    @property
    def unknown_meters(self) -> list[str]:
        """Meters that this release does not know."""
        return sorted(meter for meter in self.rows if not known_meter(meter))


@dataclass(frozen=True, slots=True)
class Extract:
    """The rows of a run's sound inputs (`USAGE_SCHEMA`)."""

    rows: DataFrame
    content: Content
    damaged: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class _Meter:
    """What a file holds of one meter: a row of `profile`."""

    meter: str
    rows: int
    quantity: int
    incomplete: int
    negative: int
    misplaced: int


def extract(spark: SparkSession, run: RunManifest, progress: Progress) -> Extract:
    """Reads the inputs of a run, in three stages of progress."""
    damaged: list[Damage] = []
    with progress.stage(f"find {len(run.inputs)} usage files"):
        inputs = _keep(damaged, run.inputs, _misfits(Storage(spark), run))
    with progress.stage(f"check the digests of {len(inputs)} usage files"):
        inputs = _keep(damaged, inputs, _altered(spark, run, inputs))
    with progress.stage(f"read {sum(each.rows for each in inputs)} rows"):
        profiles, unreadable = _profiles(spark, run, inputs)
        inputs = _keep(damaged, inputs, unreadable)
        inputs = _keep(damaged, inputs, _unsound(inputs, profiles))
    content = _content(profiles[each.key] for each in inputs)
    rows = read_usage(spark, run, inputs).select(*USAGE_SCHEMA.names)
    return Extract(rows, content, tuple(sorted(damaged, key=lambda each: each.key)))


def read_usage(spark: SparkSession, run: RunManifest, inputs: Sequence[Input]) -> DataFrame:
    """The rows of usage files with the `file` that each is from."""
    if not inputs:
        nothing = [_null_of(name) for name in USAGE_SCHEMA.names]
        return spark.range(0).select(*nothing, sf.lit("").alias("file"))
    reader = spark.read.schema(USAGE_SCHEMA).option("recursiveFileLookup", "true")
    rows = reader.parquet(*(literal_path(run.path(each)) for each in inputs))
    return rows.select(*USAGE_SCHEMA.names, sf.col("_metadata.file_path").alias("file"))


def _null_of(name: str) -> Column:
    return sf.lit(None).cast(USAGE_SCHEMA[name].dataType).alias(name)


def _keep(
    damaged: list[Damage], inputs: Iterable[Input], found: Iterable[Damage]
) -> tuple[Input, ...]:
    """The inputs that were not found to be damaged."""
    found = list(found)
    damaged.extend(found)
    keys = {each.key for each in found}
    return tuple(each for each in inputs if each.key not in keys)


def _misfits(storage: Storage, run: RunManifest) -> Iterable[Damage]:
    """Inputs that are missing or of another size."""
    folders: dict[str, dict[str, int]] = {}
    for each in run.inputs:
        folder, _, name = run.path(each).rpartition("/")
        if folder not in folders:
            folders[folder] = storage.sizes(folder)
        size = folders[folder].get(name)
        if size is None:
            yield Damage(each.key, "missing", "there is no such file")
        elif size != each.size_bytes:
            yield Damage(each.key, "size", f"{size} bytes, {each.size_bytes} in the manifest")


def _altered(spark: SparkSession, run: RunManifest, inputs: Sequence[Input]) -> Iterable[Damage]:
    """Inputs of the right size with other bytes."""
    if not inputs:
        return
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load([literal_path(run.path(each)) for each in inputs])
    found = {row["file"]: row["sha256"] for row in digests(files).collect()}
    by_key = _by_key(run, found)
    for each in inputs:
        sha256 = by_key.get(each.key, "")
        if sha256 != each.sha256:
            yield Damage(each.key, "sha256", f"{sha256}, {each.sha256} in the manifest")


def _profiles(
    spark: SparkSession, run: RunManifest, inputs: Sequence[Input]
) -> tuple[dict[str, list[_Meter]], list[Damage]]:
    """What each file holds, and the files that Spark cannot read.

    All files are read at once. If one fails, halves are tried, down to those that fail alone.
    """
    profiles: dict[str, list[_Meter]] = {}
    unreadable: list[Damage] = []
    waiting = [tuple(inputs)] if inputs else []
    while waiting:
        some = waiting.pop()
        try:
            rows = profile(read_usage(spark, run, some)).collect()
        except Py4JJavaError as error:
            fault = str(error.java_exception.getMessage())
            if not _is_of_a_file(fault):
                raise
            middle = len(some) // 2
            if middle:
                waiting += [some[:middle], some[middle:]]
            else:
                unreadable.append(Damage(some[0].key, "unreadable", fault.partition("\n")[0]))
            continue
        by_file: dict[str, list[_Meter]] = defaultdict(list)
        for row in rows:
            by_file[row["file"]].append(_meter(row))
        # A file without rows is in no row.
        profiles |= {each.key: [] for each in some} | _by_key(run, by_file)
    return profiles, unreadable


def _is_of_a_file(fault: str) -> bool:
    return any(each in fault for each in _FILE_FAULTS) and not any(
        each in fault for each in _OWN_FAULTS
    )


def _meter(row: Row) -> _Meter:
    return _Meter(
        meter=row["meter"] or "",
        rows=row["rows"],
        quantity=int(row["quantity"] or 0),
        incomplete=row["incomplete"],
        negative=row["negative"],
        misplaced=row["misplaced"],
    )


def _by_key(run: RunManifest, found: Mapping[str, T]) -> dict[str, T]:
    """What was found by file, by key. Spark names files by URI, in its own spelling of the root."""
    inputs = {each.key for each in run.inputs}
    depths = {key.count("/") + 1 for key in inputs}
    by_key = {}
    for file, value in found.items():
        parts = unquote(file).split("/")
        keys = {"/".join(parts[-depth:]) for depth in depths} & inputs
        for key in keys:
            by_key[key] = value
    return by_key


def _unsound(inputs: Iterable[Input], profiles: Mapping[str, Sequence[_Meter]]) -> Iterable[Damage]:
    """Inputs that hold other rows than their manifest says, or rows that lack their identity."""
    for each in inputs:
        meters = profiles[each.key]
        rows = sum(meter.rows for meter in meters)
        incomplete = sum(meter.incomplete for meter in meters)
        if rows != each.rows:
            yield Damage(each.key, "rows", f"{rows} rows, {each.rows} in the manifest")
        elif incomplete:
            yield Damage(each.key, "incomplete", f"{incomplete} rows lack what their meter needs")


def _content(files: Iterable[Sequence[_Meter]]) -> Content:
    content = Content()
    for file in files:
        for meter in file:
            content.rows[meter.meter] += meter.rows
            content.totals[meter.meter] += meter.quantity
            content.negative += meter.negative
            content.misplaced += meter.misplaced
    return content
