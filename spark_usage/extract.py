"""Reads the inputs of a run: damaged files are found, named in the report, and left out.

A file is damaged when it is missing, differs from its manifest (size, SHA-256, number of rows),
cannot be read as Parquet, or holds rows that lack what identifies them. That does not end a run.
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
from spark_usage.transforms.inputs import (
    count_columns,
    file_digests,
    flawed_files,
    known_meter,
    profile_files,
)
from spark_usage.transforms.sums import join_halves

T = TypeVar("T")

# Texts in Spark's errors by which a file is at fault: its own error class, and the packages that
# fail on damaged pages.
_FILE_FAULTS = ("FAILED_READ_FILE", "org.apache.parquet.", "datasources.parquet.")
# Texts by which the machine is at fault, even though such a package failed.
_OWN_FAULTS = ("OutOfMemoryError",)


@dataclass(frozen=True, slots=True)
class Damage:
    """An input that was left out, and why."""

    key: str
    reason: str
    detail: str


@dataclass(slots=True)
class Content:
    """The content of all rows that were read: their number and total quantity by meter, and the
    number of negative rows."""

    rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    totals: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    negative: int = 0

    @property
    def row_count(self) -> int:
        """The number of rows of all meters."""
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
    """The part of a file's content that is of one meter: a row of `profile_files`."""

    meter: str
    rows: int
    quantity: int
    negative: int


@dataclass(slots=True)
class _Inputs:
    """The inputs of a run while they are checked."""

    spark: SparkSession
    run: RunManifest
    sound: tuple[Input, ...]
    damaged: list[Damage] = field(default_factory=list)
    # The content of all sound inputs.
    content: Content = field(default_factory=Content)

    def drop(self, damages: Iterable[Damage]) -> None:
        """Leaves damaged inputs out, and remembers them for the report."""
        damages = list(damages)
        self.damaged.extend(damages)
        keys = {damage.key for damage in damages}
        self.sound = tuple(damage for damage in self.sound if damage.key not in keys)

    def extract(self) -> Extract:
        """The rows of the sound inputs."""
        rows = read_usage(self.spark, self.run, self.sound).select(*USAGE_SCHEMA.names)
        damaged = tuple(sorted(self.damaged, key=lambda damage: damage.key))
        return Extract(rows, self.content, damaged)


def with_sound_rows(
    spark: SparkSession, run: RunManifest, progress: Progress, use: Callable[[DataFrame], T]
) -> tuple[Extract, T]:
    """Reads the inputs of a run in three stages; returns them, and the result of `use`.

    `use` reads all columns of all rows anyway, so rows are counted on the way. Only if it meets a
    file that cannot be read, raises `IncompleteRows`, or the number of rows is not the one in the
    manifests, is each file examined by itself, and `use` called again.
    """
    inputs = _Inputs(spark, run, run.inputs)
    with progress.stage(f"find {len(run.inputs)} usage files"):
        inputs.drop(_missized_files(Storage(spark), run))
    with progress.stage(f"check the digests of {len(inputs.sound)} usage files"):
        inputs.drop(_altered_files(spark, run, inputs.sound))
    expected = sum(file.rows for file in inputs.sound)
    with progress.stage(f"deduplicate {expected} rows"):
        extracted = inputs.extract()
        if not inputs.sound:
            return extracted, use(extracted.rows)
        counted = Observation()
        try:
            used = use(extracted.rows.observe(counted, *count_columns()))
            content = _content_of_counts(counted.get)
            if content is not None and content.row_count == expected:
                return replace(extracted, content=content), used
            progress.note("there are other rows than manifests say: looking at each file")
        except IncompleteRows:
            progress.note("some rows are incomplete: looking at each file")
        except Py4JJavaError as error:
            if not _is_of_a_file(_fault_text(error)):
                raise
            progress.note("some file cannot be read: looking at each file")
        _drop_flawed(inputs)
        _count_files(inputs)
        extracted = inputs.extract()
        return extracted, use(extracted.rows)


def read_usage(spark: SparkSession, run: RunManifest, inputs: Sequence[Input]) -> DataFrame:
    """The rows of usage files, with a column `file` (the URI) that each row comes from."""
    if not inputs:
        nothing = [_null_of(name) for name in USAGE_SCHEMA.names]
        return spark.range(0).select(*nothing, sf.lit("").alias("file"))
    reader = spark.read.schema(USAGE_SCHEMA).option("recursiveFileLookup", "true")
    rows = reader.parquet(*(literal_path(run.path(file)) for file in inputs))
    return rows.select(*USAGE_SCHEMA.names, sf.col("_metadata.file_path").alias("file"))


def _null_of(name: str) -> Column:
    return sf.lit(None).cast(USAGE_SCHEMA[name].dataType).alias(name)


def _missized_files(storage: Storage, run: RunManifest) -> Iterable[Damage]:
    """Inputs that are missing, or have another size than their manifest says."""
    folders: dict[str, dict[str, int]] = {}
    for file in run.inputs:
        folder, _, name = run.path(file).rpartition("/")
        if folder not in folders:
            folders[folder] = storage.sizes(folder)
        size = folders[folder].get(name)
        if size is None:
            yield Damage(file.key, "missing", "there is no such file")
        elif size != file.size_bytes:
            yield Damage(file.key, "size", f"{size} bytes, {file.size_bytes} in the manifest")


def _altered_files(
    spark: SparkSession, run: RunManifest, inputs: Sequence[Input]
) -> Iterable[Damage]:
    """Inputs whose bytes have another SHA-256 than their manifest says."""
    if not inputs:
        return
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load([literal_path(run.path(file)) for file in inputs])
    by_file = {row["file"]: row["sha256"] for row in file_digests(files).collect()}
    by_key = _values_by_key(run, by_file)
    for file in inputs:
        sha256 = by_key.get(file.key, "")
        if sha256 != file.sha256:
            yield Damage(file.key, "sha256", f"{sha256}, {file.sha256} in the manifest")


def _count_files(inputs: _Inputs) -> None:
    """Drops files with another number of rows than their manifest says; sums up what the others
    hold."""
    by_file: dict[str, list[_Meter]] = defaultdict(list)
    for row in _read_by_halves(inputs, profile_files):
        by_file[row["file"]].append(_meter_of_row(row))
    # A file without rows is in no row of the profile.
    profiles: dict[str, list[_Meter]] = {file.key: [] for file in inputs.sound}
    profiles |= _values_by_key(inputs.run, by_file)
    rows = {key: sum(meter.rows for meter in meters) for key, meters in profiles.items()}
    inputs.drop(
        Damage(file.key, "rows", f"{rows[file.key]} rows, {file.rows} in the manifest")
        for file in inputs.sound
        if rows[file.key] != file.rows
    )
    inputs.content = _content_of_files(profiles[file.key] for file in inputs.sound)


def _drop_flawed(inputs: _Inputs) -> None:
    """Drops files with pages that cannot be read, or with rows that lack what identifies them."""
    flawed = {row["file"]: row["incomplete"] for row in _read_by_halves(inputs, flawed_files)}
    by_key = _values_by_key(inputs.run, flawed)
    inputs.drop(
        Damage(key, "incomplete", f"{rows} rows lack what their meter needs")
        for key, rows in by_key.items()
        if rows
    )


def _read_by_halves(inputs: _Inputs, look: Callable[[DataFrame], DataFrame]) -> list[Row]:
    """The rows of `look` for all files that can be read; drops the other files.

    All files are read at once. If that fails, halves are tried, down to those that fail alone.
    """
    rows: list[Row] = []
    unreadable: list[Damage] = []
    waiting = [inputs.sound] if inputs.sound else []
    while waiting:
        some = waiting.pop()
        try:
            rows += look(read_usage(inputs.spark, inputs.run, some)).collect()
        except Py4JJavaError as error:
            fault = _fault_text(error)
            if not _is_of_a_file(fault):
                raise
            middle = len(some) // 2
            if middle:
                waiting += [some[:middle], some[middle:]]
            else:
                unreadable.append(Damage(some[0].key, "unreadable", fault.partition("\n")[0]))
    inputs.drop(unreadable)
    return rows


def _fault_text(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage())


def _is_of_a_file(fault: str) -> bool:
    return any(name in fault for name in _FILE_FAULTS) and not any(
        name in fault for name in _OWN_FAULTS
    )


def _content_of_counts(counted: Mapping[str, Any]) -> Content | None:
    """The content from the columns of `count_columns`; None where there are rows of meters that
    these do not count."""
    if counted["other_rows"]:
        return None
    content = Content(negative=counted["negative"])
    for meter in METERS:
        if counted[f"{meter}_rows"]:
            content.rows[meter] = counted[f"{meter}_rows"]
            high, low = counted[f"{meter}_high"], counted[f"{meter}_low"]
            content.totals[meter] = join_halves(high, low)
    return content


def _meter_of_row(row: Row) -> _Meter:
    return _Meter(
        meter=row["meter"] or "",
        rows=row["rows"],
        quantity=int(row["quantity"] or 0),
        negative=row["negative"],
    )


def _values_by_key(run: RunManifest, by_file: Mapping[str, T]) -> dict[str, T]:
    """Values by key, from values by the file's URI.

    Spark spells the root in its own way, so that a URI is matched by its last parts.
    """
    inputs = {file.key for file in run.inputs}
    depths = {key.count("/") + 1 for key in inputs}
    by_key = {}
    for file, value in by_file.items():
        parts = unquote(file).split("/")
        keys = {"/".join(parts[-depth:]) for depth in depths} & inputs
        for key in keys:
            by_key[key] = value
    return by_key


def _content_of_files(files: Iterable[Sequence[_Meter]]) -> Content:
    content = Content()
    for file in files:
        for meter in file:
            content.rows[meter.meter] += meter.rows
            content.totals[meter.meter] += meter.quantity
            content.negative += meter.negative
    return content
