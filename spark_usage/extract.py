"""From the inputs of a run to rows that may count: damaged files are found, named and left out.

A file is damaged when it is missing, is not the file of its manifest (size, SHA-256), cannot be
read as Parquet, or holds other rows than its manifest says or rows that lack their identity. None
of that ends a run: it ends in the report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as sf

from spark_usage.errors import IncompleteRows
from spark_usage.progress import Progress
from spark_usage.run_manifest import Input, RunManifest
from spark_usage.schemas import METERS, USAGE_SCHEMA
from spark_usage.storage import Storage, literal_path
from spark_usage.transforms.inputs import counts, digests, flaws, known_meter, profile
from spark_usage.transforms.sums import joined

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
    """What was read: `totals` and `rows` by meter, and how many rows are negative."""

    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    totals: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    negative: int = 0

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
    negative: int


@dataclass(slots=True)
class _Inputs:
    """Inputs on the way to be sound."""

    spark: SparkSession
    run: RunManifest
    sound: tuple[Input, ...]
    damaged: list[Damage] = field(default_factory=list)
    # What the sound ones hold together.
    content: Content = field(default_factory=Content)

    def drop(self, found: Iterable[Damage]) -> None:
        """Leaves out what was found to be damaged."""
        found = list(found)
        self.damaged.extend(found)
        keys = {each.key for each in found}
        self.sound = tuple(each for each in self.sound if each.key not in keys)

    def extract(self) -> Extract:
        """The rows of what is left."""
        rows = read_usage(self.spark, self.run, self.sound).select(*USAGE_SCHEMA.names)
        damaged = tuple(sorted(self.damaged, key=lambda each: each.key))
        return Extract(rows, self.content, damaged)


def with_sound_rows(
    spark: SparkSession, run: RunManifest, progress: Progress, use: Callable[[DataFrame], T]
) -> tuple[Extract, T]:
    """Reads the inputs of a run, in three stages of progress; returns them and what `use` makes.

    `use` goes through all columns of all rows anyway, so what there is to count is counted on the
    way. Only if it comes upon a file that cannot be read, or raises `IncompleteRows`, or if there
    were not as many rows as manifests say, is each file gone through by itself, and `use` called
    again.
    """
    inputs = _Inputs(spark, run, run.inputs)
    with progress.stage(f"find {len(run.inputs)} usage files"):
        inputs.drop(_misfits(Storage(spark), run))
    with progress.stage(f"check the digests of {len(inputs.sound)} usage files"):
        inputs.drop(_altered(spark, run, inputs.sound))
    expected = sum(each.rows for each in inputs.sound)
    with progress.stage(f"deduplicate {expected} rows"):
        extracted = inputs.extract()
        if not inputs.sound:
            return extracted, use(extracted.rows)
        counted = Observation()
        try:
            used = use(extracted.rows.observe(counted, *counts()))
            content = _counted(counted.get)
            if content is not None and content.row_count == expected:
                return replace(extracted, content=content), used
            progress.note("there are other rows than manifests say: looking at each file")
        except IncompleteRows:
            progress.note("some rows are incomplete: looking at each file")
        except Py4JJavaError as error:
            if not _is_of_a_file(_fault(error)):
                raise
            progress.note("some file cannot be read: looking at each file")
        _inspect(inputs)
        _count_each(inputs)
        extracted = inputs.extract()
        return extracted, use(extracted.rows)


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


def _count_each(inputs: _Inputs) -> None:
    """Drops files whose rows are not as many as their manifest says; notes what the others hold."""
    by_file: dict[str, list[_Meter]] = defaultdict(list)
    for row in _read_by_halves(inputs, profile):
        by_file[row["file"]].append(_meter(row))
    # A file without rows is in no row.
    profiles: dict[str, list[_Meter]] = {each.key: [] for each in inputs.sound}
    profiles |= _by_key(inputs.run, by_file)
    rows = {key: sum(each.rows for each in found) for key, found in profiles.items()}
    inputs.drop(
        Damage(each.key, "rows", f"{rows[each.key]} rows, {each.rows} in the manifest")
        for each in inputs.sound
        if rows[each.key] != each.rows
    )
    inputs.content = _content(profiles[each.key] for each in inputs.sound)


def _inspect(inputs: _Inputs) -> None:
    """Drops files with pages that cannot be read, and with rows that lack what they need."""
    flawed = {row["file"]: row["incomplete"] for row in _read_by_halves(inputs, flaws)}
    by_key = _by_key(inputs.run, flawed)
    inputs.drop(
        Damage(key, "incomplete", f"{rows} rows lack what their meter needs")
        for key, rows in by_key.items()
        if rows
    )


def _read_by_halves(inputs: _Inputs, look: Callable[[DataFrame], DataFrame]) -> list[Row]:
    """What is found in all files that can be read; drops the others.

    All files are read at once. If that fails, halves are tried, down to those that fail alone.
    """
    found: list[Row] = []
    unreadable: list[Damage] = []
    waiting = [inputs.sound] if inputs.sound else []
    while waiting:
        some = waiting.pop()
        try:
            found += look(read_usage(inputs.spark, inputs.run, some)).collect()
        except Py4JJavaError as error:
            fault = _fault(error)
            if not _is_of_a_file(fault):
                raise
            middle = len(some) // 2
            if middle:
                waiting += [some[:middle], some[middle:]]
            else:
                unreadable.append(Damage(some[0].key, "unreadable", fault.partition("\n")[0]))
    inputs.drop(unreadable)
    return found


def _fault(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage())


def _is_of_a_file(fault: str) -> bool:
    return any(each in fault for each in _FILE_FAULTS) and not any(
        each in fault for each in _OWN_FAULTS
    )


def _counted(found: Mapping[str, Any]) -> Content | None:
    """What was counted on the way; None where there are rows of meters that nobody counted."""
    if found["other_rows"]:
        return None
    content = Content(negative=found["negative"])
    for meter in METERS:
        if found[f"{meter}_rows"]:
            content.rows[meter] = found[f"{meter}_rows"]
            high, low = found[f"{meter}_high"], found[f"{meter}_low"]
            content.totals[meter] = joined(high, low)
    return content


def _meter(row: Row) -> _Meter:
    return _Meter(
        meter=row["meter"] or "",
        rows=row["rows"],
        quantity=int(row["quantity"] or 0),
        negative=row["negative"],
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


def _content(files: Iterable[Sequence[_Meter]]) -> Content:
    content = Content()
    for file in files:
        for meter in file:
            content.rows[meter.meter] += meter.rows
            content.totals[meter.meter] += meter.quantity
            content.negative += meter.negative
    return content
