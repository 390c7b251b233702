"""Hours of published days as lists show them: grouped, in order, a page at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metering.choices import Granularity
from metering.events.times import ceil_to
from metering.periods import DAY_MS, HOUR_MS, from_ms, to_ms
from metering.services.hour_files import HoursQuery, PublishedDay, Section, read_hours
from metering.services.publishing import row_id

# A page ends with the section during which it has read for so long, or so many rows.
READ_S = 3.0
ROWS_READ = 1_000_000
# The order of lists, in the columns of files.
ORDER = ("window_start_ms", "meter", "cluster_id", "topic_id", "principal", "billed")
PLACES = ("cluster_id", "topic_id", "principal")
MILLISECOND = timedelta(milliseconds=1)

# (start of the window, meter, cluster, topic, principal, billed, id, quantity, provisional), as the
# statement of `usage.py` returns rows.
HourRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FileQuery:
    """Which hours of published days are asked for: those that begin in [start, end).

    `clusters` are those of the organization that the caller may see; `grouped` are the columns of
    `PLACES` that are shown; `filters` are values that columns must have.
    """

    organization_id: str
    clusters: Sequence[str]
    days: Sequence[PublishedDay]
    start: datetime
    end: datetime
    grouped: Sequence[str]
    filters: Mapping[str, str | bool]


def list_file_hours(
    query: FileQuery, *, limit: int, after: tuple[Any, ...] | None
) -> tuple[list[HourRow], datetime | None]:
    """The rows behind the place `after`, until there are `limit` ones or a bound is reached.

    Beside them the time up to which there are all, where that is before the end. Raises
    `Unavailable`.
    """
    hours = HoursQuery(
        organization_id=query.organization_id,
        clusters=sorted(query.clusters),
        start_ms=_full_hour(query.start),
        end_ms=_full_hour(query.end),
    )
    rows: list[HourRow] = []
    began, read = time.monotonic(), 0
    for section in read_hours(query.days, hours):
        rows += _rows_of(section, query, limit=limit, after=after)
        read += section.read
        if len(rows) >= limit or read >= ROWS_READ or time.monotonic() - began >= READ_S:
            is_all = section.end_ms >= hours.end_ms
            return rows[:limit], None if is_all else from_ms(section.end_ms)
    return rows, None


def _full_hour(moment: datetime) -> int:
    """The first full hour at or after a time, in milliseconds since 1970."""
    return ceil_to(to_ms(moment + MILLISECOND - timedelta.resolution), HOUR_MS)


def _rows_of(
    section: Section, query: FileQuery, *, limit: int, after: tuple[Any, ...] | None
) -> list[HourRow]:
    table = section.rows
    for name, value in query.filters.items():
        table = table.filter(pc.field(name) == value)
    for name in PLACES:
        if name not in query.grouped:
            empty = pa.repeat(pa.scalar(""), table.num_rows)
            table = table.set_column(table.schema.get_field_index(name), name, empty)
    if tuple(query.grouped) != PLACES:
        sums = table.group_by(list(ORDER)).aggregate([("quantity", "sum")])
        table = sums.rename_columns([*ORDER, "quantity"])
    if after is not None:
        table = table.filter(_behind(table, after))
    table = table.sort_by([(name, "ascending") for name in ORDER]).slice(0, limit)
    columns = [table.column(name).to_pylist() for name in (*ORDER, "quantity")]
    is_row = tuple(query.grouped) == PLACES
    rows = []
    for start_ms, meter, cluster_id, topic_id, principal, billed, quantity in zip(
        *columns, strict=True
    ):
        # The hour is a part of the row of its day, which invoices name.
        day_key = (cluster_id, topic_id, principal, meter, start_ms - start_ms % DAY_MS, billed)
        of_day = row_id(section.run_id, Granularity.DAY.value, day_key) if is_row else None
        place = (meter, cluster_id, topic_id, principal, billed)
        rows.append((from_ms(start_ms), *place, of_day, quantity, False))
    return rows


def _behind(table: pa.Table, after: tuple[Any, ...]) -> pa.ChunkedArray:
    """Which rows come after a place in `ORDER`."""
    start, *texts, billed = after
    values = [to_ms(start), *texts, int(billed)]
    columns = [table.column(name) for name in ORDER[:-1]]
    columns.append(table.column("billed").cast(pa.int8()))

    def add_column(behind: Any, of_column: tuple[Any, Any]) -> Any:  # noqa: ANN401 (of pyarrow)
        column, value = of_column
        is_same = pc.and_(pc.equal(column, value), behind)
        return pc.or_(pc.greater(column, value), is_same)

    nothing = pa.repeat(pa.scalar(False), table.num_rows)
    return reduce(add_column, reversed(list(zip(columns, values, strict=True))), nothing)
