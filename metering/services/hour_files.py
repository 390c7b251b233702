"""Hours of published days, read from the Parquet files of their runs.

What a run wrote never changes, so its footers are read once by a process and remembered, as far as
there is memory for them. They say which parts of a file may have rows of a cluster and an hour;
only these parts are read. The job writes rows in the order of organizations and clusters, so that
the rows of a cluster lie together.

The store is read outside of the caller's transaction, by a few threads, and for a bounded time.
"""

from __future__ import annotations

import io
import logging
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import override

from console.base.common.conf import config
from console.base.common.errors import Unavailable
from console.base.common.transactions import outside_transaction
from metering.events.store import PartStore
from metering.periods import DAY_MS, HOUR_MS, day_start, to_ms
from metering.services.run_folders import HOURS, STORE, RunFolder
from metering.stores import open_usage_store

logger = logging.getLogger(__name__)

# The columns of hours that are read.
SCHEMA = pa.schema(
    [
        ("organization_id", pa.string()),
        ("cluster_id", pa.string()),
        ("topic_id", pa.string()),
        ("principal", pa.string()),
        ("meter", pa.string()),
        ("billed", pa.bool_()),
        ("window_start_ms", pa.int64()),
        ("quantity", pa.decimal128(38, 0)),
    ]
)
# The end of a file that is read first: it has the whole footer of all but very large files.
END_BYTES = 128 * 1024
# Footers that a process remembers, by their size in files. In memory they take more.
FOOTERS_BYTES = 16 * 1024 * 1024
# Rows of the parts that are read at once; an hour of a cluster that has more is read whole.
ROWS_AT_ONCE = 200_000
# Parts of a file that lie side by side are read together up to this size.
PART_BYTES = 8 * 1024 * 1024
# Days whose footers are read at once, at first one.
DAYS_AT_ONCE = 8
THREADS = 16
# A store that does not send what was asked for by then counts as one that does not answer.
ANSWERS_S = 10.0

Result = TypeVar("Result")
# By the file's key: the places of parts in it, and their bytes.
_Parts = dict[str, list[tuple[int, bytes]]]


@dataclass(frozen=True, slots=True)
class PublishedDay:
    """A day whose hours are in the files of a run, and how many rows they have."""

    day: date
    run_id: str
    rows: int


@dataclass(frozen=True, slots=True)
class HoursQuery:
    """The hours of clusters in [start, end), in milliseconds since 1970 and whole hours.

    `clusters` are sorted, and all of one organization.
    """

    organization_id: str
    clusters: Sequence[str]
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Section:
    """All rows that a query asks of a run, whose hours begin in [start, end).

    The table has `SCHEMA`; `read` is how many rows the parts had that were read for it.
    """

    run_id: str
    start_ms: int
    end_ms: int
    rows: pa.Table
    read: int


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group: its bytes in the file, and the least and greatest values of two columns."""

    number: int
    start: int
    length: int
    rows: int
    clusters: tuple[str, str]
    hours_ms: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _File:
    """A Parquet file and what its footer says."""

    key: str
    size: int
    footer: pq.FileMetaData
    groups: tuple[_Group, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A section that is to be read, and the groups that may have rows of it."""

    run_id: str
    start_ms: int
    end_ms: int
    groups: tuple[tuple[_File, _Group], ...]

    @property
    def rows(self) -> int:
        return sum(group.rows for _, group in self.groups)


def read_hours(days: Sequence[PublishedDay], query: HoursQuery) -> Iterator[Section]:
    """Yields the hours of published days in the order of time, in sections of whole hours.

    `days` are in order. Nothing is read before it is asked for. Raises `Unavailable` where a file
    is missing or damaged, or the store does not answer; must be called outside of any block of a
    transaction but the request's.
    """
    at, ahead = 0, 1
    days = [day for day in days if _overlaps(day.day, query)] if query.clusters else []
    while at < len(days):
        of_these = days[at : at + ahead]
        files_of_days = _files_of(of_these)
        steps: list[_Step] = []
        for day, files in zip(of_these, files_of_days, strict=True):
            _check_rows(day, files)
            steps += _plan_steps(day, files, query)
        for together in _read_together(steps):
            parts = _read_parts(together)
            for step in together:
                rows = _rows_of(step, parts, query)
                yield Section(step.run_id, step.start_ms, step.end_ms, rows, step.rows)
        at, ahead = at + ahead, min(2 * ahead, DAYS_AT_ONCE)


def has_hours(day: PublishedDay) -> bool:
    """Whether the files of a run have all its hours. Raises `Unavailable`."""
    (files,) = _files_of([day])
    return _count_rows(files) == day.rows


def _check_rows(day: PublishedDay, files: Sequence[_File]) -> None:
    count = _count_rows(files)
    if count != day.rows:
        logger.error(
            "hours.missing", extra={"run": day.run_id, "rows": count, "expected": day.rows}
        )
        message = f"The hours of {day.day} cannot be read now. Those of its day can."
        raise Unavailable(message)


def _count_rows(files: Iterable[_File]) -> int:
    return sum(group.rows for file in files for group in file.groups)


def _plan_steps(day: PublishedDay, files: Sequence[_File], query: HoursQuery) -> Iterator[_Step]:
    """Steps over the hours of a day, with as many hours each as have `ROWS_AT_ONCE` rows."""
    matching = [
        (file, group)
        for file in files
        for group in file.groups
        if _has_one_within(query.clusters, *group.clusters)
    ]

    def step_of(start_ms: int, end_ms: int) -> _Step:
        return _Step(day.run_id, start_ms, end_ms, _groups_within(matching, start_ms, end_ms))

    midnight_ms = to_ms(day_start(day.day))
    start_ms, end_ms = max(query.start_ms, midnight_ms), min(query.end_ms, midnight_ms + DAY_MS)
    while start_ms < end_ms:
        step = step_of(start_ms, end_ms)
        while step.rows > ROWS_AT_ONCE and step.end_ms - start_ms > HOUR_MS:
            half = (step.end_ms - start_ms) // HOUR_MS // 2
            step = step_of(start_ms, start_ms + half * HOUR_MS)
        yield step
        start_ms = step.end_ms


def _overlaps(day: date, query: HoursQuery) -> bool:
    start_ms = to_ms(day_start(day))
    return start_ms < query.end_ms and start_ms + DAY_MS > query.start_ms


def _groups_within(
    groups: Iterable[tuple[_File, _Group]], start_ms: int, end_ms: int
) -> tuple[tuple[_File, _Group], ...]:
    return tuple(
        (file, group)
        for file, group in groups
        if group.hours_ms[0] < end_ms and group.hours_ms[1] >= start_ms
    )


def _has_one_within(names: Sequence[str], least: str, greatest: str) -> bool:
    at = bisect_left(names, least)
    return at < len(names) and names[at] <= greatest


def _read_together(steps: Iterable[_Step]) -> Iterator[list[_Step]]:
    """Steps in order, as many together as have `ROWS_AT_ONCE` rows."""
    together: list[_Step] = []
    rows = 0
    for step in steps:
        if together and rows + step.rows > ROWS_AT_ONCE:
            yield together
            together, rows = [], 0
        together.append(step)
        rows += step.rows
    if together:
        yield together


def _rows_of(step: _Step, parts: _Parts, query: HoursQuery) -> pa.Table:
    """The rows of a step's groups that are query."""
    by_file: dict[str, tuple[_File, list[int]]] = {}
    for file, group in step.groups:
        by_file.setdefault(file.key, (file, []))[1].append(group.number)
    chosen = (
        (pc.field("organization_id") == query.organization_id)
        & pc.field("cluster_id").isin(list(query.clusters))
        & (pc.field("window_start_ms") >= step.start_ms)
        & (pc.field("window_start_ms") < step.end_ms)
    )
    tables = [SCHEMA.empty_table()]
    for file, numbers in by_file.values():
        source = _ReadFile(file.size, parts[file.key])
        try:
            with pq.ParquetFile(
                source,
                metadata=file.footer,
                # A buffer would read what lies between the groups too.
                pre_buffer=False,
                # Spark writes one for each page.
                page_checksum_verification=True,
            ) as parquet:
                table = parquet.read_row_groups(numbers, columns=SCHEMA.names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error
        tables.append(table.filter(chosen).select(SCHEMA.names).cast(SCHEMA))
    return pa.concat_tables(tables)


def _read_parts(steps: Iterable[_Step]) -> _Parts:
    """Reads the groups of some steps; what lies side by side in one go."""
    groups = {
        (file.key, group.start): group.length for step in steps for file, group in step.groups
    }
    spans: list[tuple[str, int, int]] = []
    for (key, start), length in sorted(groups.items()):
        if spans:
            before, first, so_far = spans[-1]
            if before == key and first + so_far == start and so_far + length <= PART_BYTES:
                spans[-1] = (key, first, so_far + length)
                continue
        spans.append((key, start, length))
    store = _store(config().usage.rollups)
    contents = _ask_store([partial(store.read_part, *span) for span in spans])
    parts: _Parts = {}
    for (key, start, _), content in zip(spans, contents, strict=True):
        parts.setdefault(key, []).append((start, content))
    return parts


class _ReadFile(io.RawIOBase):
    """A file of which only some parts were read."""

    def __init__(self, size: int, parts: Sequence[tuple[int, bytes]]) -> None:
        super().__init__()
        self._size = size
        self._parts = parts
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._at

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    @override
    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        for start, content in self._parts:
            first = self._at - start
            if first >= 0 and first + length <= len(content):
                buffer[:length] = content[first : first + length]
                self._at += length
                return length
        message = f"{length} bytes from {self._at} on were not read"
        raise OSError(message)


class _Footers:
    """Remembers the files of runs, the least recently used of them for the shortest time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[str, tuple[_File, ...]] = OrderedDict()
        self._bytes = 0

    def get(self, place: str) -> tuple[_File, ...] | None:
        with self._lock:
            if place in self._files:
                self._files.move_to_end(place)
            return self._files.get(place)

    def put(self, place: str, files: tuple[_File, ...]) -> None:
        with self._lock:
            self._forget(place)
            self._files[place] = files
            self._bytes += _footer_bytes(files)
            while self._bytes > FOOTERS_BYTES and len(self._files) > 1:
                self._forget(next(iter(self._files)))

    def _forget(self, place: str) -> None:
        self._bytes -= _footer_bytes(self._files.pop(place, ()))


def _footer_bytes(files: Iterable[_File]) -> int:
    return sum(file.footer.serialized_size for file in files)


_footers = _Footers()


def forget_footers() -> None:
    """Has this process read every footer anew."""
    global _footers  # noqa: PLW0603 (one memory a process)
    _footers = _Footers()


def _files_of(days: Sequence[PublishedDay]) -> list[tuple[_File, ...]]:
    """The files of each day's hours, by key. Raises `Unavailable`."""
    location = config().usage.rollups
    store = _store(location)
    places = {day: f"{location} {_prefix_of(day)}" for day in days}
    known = {day: files for day in days if (files := _footers.get(places[day])) is not None}
    unknown = [day for day in days if day not in known]
    listed = _ask_store([partial(_list_files, store, _prefix_of(day)) for day in unknown])
    read = iter(_ask_store([partial(_read_file, store, key) for keys in listed for key in keys]))
    for day, keys in zip(unknown, listed, strict=True):
        known[day] = tuple(islice(read, len(keys)))
        # A folder that lacks some is made whole by the next roll-up of the day.
        if _count_rows(known[day]) == day.rows:
            _footers.put(places[day], known[day])
    return [known[day] for day in days]


def _prefix_of(day: PublishedDay) -> str:
    return f"{RunFolder(day.day, day.run_id).key}/{HOURS}/"


def _list_files(store: PartStore, prefix: str) -> list[str]:
    return [key for key in store.list(prefix) if key.endswith(".parquet")]


def _read_file(store: PartStore, key: str) -> _File:
    end, size = store.read_end(key, END_BYTES)
    # The last eight bytes are the footer's length and Parquet's mark.
    length = int.from_bytes(end[-8:-4], "little") + 8
    if length > len(end):
        end, size = store.read_end(key, length)
    footer = pq.read_metadata(pa.BufferReader(end))
    groups = tuple(
        _read_group(footer, number)
        for number in range(footer.num_row_groups)
        if footer.row_group(number).num_rows
    )
    return _File(key, size, footer, groups)


def _read_group(footer: pq.FileMetaData, number: int) -> _Group:
    group = footer.row_group(number)
    columns = [group.column(at) for at in range(group.num_columns)]
    by_name = {column.path_in_schema: column for column in columns}
    places = [
        (min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))), chunk)
        for chunk in columns
    ]
    start = min(place for place, _ in places)
    end = max(place + chunk.total_compressed_size for place, chunk in places)
    return _Group(
        number=number,
        start=start,
        length=end - start,
        rows=group.num_rows,
        # Without statistics any row may be in it.
        clusters=_bounds_of(by_name["cluster_id"], ("", "\U0010ffff")),
        hours_ms=_bounds_of(by_name["window_start_ms"], (-(2**63), 2**63 - 1)),
    )


def _bounds_of(column: pq.ColumnChunkMetaData, unknown: tuple[Any, Any]) -> tuple[Any, Any]:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return unknown
    return statistics.min, statistics.max


@cache
def _store(location: str) -> PartStore:
    """The store, opened once by a process; it is for any number of threads."""
    return open_usage_store(location)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="hours")


def _ask_store(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of calls of the store, which threads make at the same time.

    Raises `Unavailable` where one fails, or the store takes longer than `ANSWERS_S`.
    """
    if not calls:
        return []
    with outside_transaction(STORE):
        futures: list[Future[Result]] = [_pool().submit(call) for call in calls]
        _, late = wait(futures, ANSWERS_S)
        if late:
            for future in futures:
                future.cancel()
            raise _unreadable(TimeoutError(f"{STORE} did not answer for {ANSWERS_S:.0f} s"))
        try:
            return [future.result() for future in futures]
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise _unreadable(error) from error


def _unreadable(error: Exception) -> Unavailable:
    logger.error("hours.unreadable", extra={"reason": f"{type(error).__name__}: {error}"})
    return Unavailable("The hours of past days cannot be read now. Those of days can.")
