"""Usage as the API lists it: rolled-up usage of published days, and minutes of other days.

Each list is one statement, so that a day that is published at this moment counts once. Hours of
published days are in files (`published_hours.py`): the statement says of which runs, and of which
clusters there may be any. What it does not name is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min
from psycopg import sql

from console.base.accounts.principals import names_of_principals
from console.base.common.clock import now
from console.base.common.conf import config
from metering.choices import UNITS, Granularity, HoursIn
from metering.models import JudgedHour
from metering.periods import DAY, FILES_KEPT, HOUR, next_month
from metering.services.hour_files import PublishedDay
from metering.services.published_hours import FileQuery, HourRow, list_file_hours

MINUTE, MONTH = "minute", "month"
GRANULARITIES = (MINUTE, Granularity.HOUR.value, Granularity.DAY.value, MONTH)
# By grouping: the columns that an item has beside its window, its meter and `billed`.
GROUPS = {
    "none": ("cluster_id", "topic_id", "principal"),
    "cluster": ("cluster_id",),
    "topic": ("cluster_id", "topic_id"),
    "principal": ("cluster_id", "principal"),
    "meter": (),
}
PLACES = GROUPS["none"]
ORDER = ("window_start", "meter", *PLACES, "billed")
NAMES = sql.SQL(", ").join(map(sql.Identifier, ORDER))
# Row by row by the primary key: there may be very many topics beside them.
TOPIC_NAMES = """
SELECT cluster_id, topic_id, name
FROM unnest(%s::text[], %s::text[]) AS topic (cluster_id, topic_id)
JOIN metering_topicname USING (cluster_id, topic_id)
"""
FILTERS = ("cluster_id", "topic_id", "principal", "meter", "billed")
# Of which runs hours are read from files, and of which clusters: those that usage files have an
# entry of, or that used what is billed. Row security binds both tables. One row, also where the
# list has none.
FILES_BESIDE = """
SELECT beside.days, beside.clusters, used.* FROM (
    SELECT
        (SELECT coalesce(jsonb_agg(jsonb_build_array(
                pointer.day, run.id, coalesce((run.report ->> 'hours')::bigint, 0)
            ) ORDER BY pointer.day), '[]')
         FROM metering_rolluppointer AS pointer JOIN metering_rolluprun AS run ON run.id = run_id
         WHERE pointer.cell = %(cell)s AND NOT pointer.early AND run.hours_in = %(files)s
             AND pointer.day BETWEEN %(first_day)s AND %(last_day)s) AS days,
        (SELECT coalesce(jsonb_agg(DISTINCT cluster_id), '[]') FROM (
            SELECT organization_id, cluster_id FROM metering_clustercoverage
            UNION ALL
            SELECT organization_id, cluster_id FROM metering_runningmonth
         ) AS metered
         WHERE organization_id = %(organization)s {filters}) AS clusters
) AS beside LEFT JOIN ({list}) AS used ON true
"""


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A query of usage whose windows begin in [start, end)."""

    organization_id: str
    start: datetime
    end: datetime
    granularity: str = Granularity.DAY.value
    group_by: str = "none"
    cluster_id: str | None = None
    # Empty: what belongs to no topic, or to no principal.
    topic_id: str | None = None
    principal: str | None = None
    meter: str | None = None
    billed: bool | None = None
    # The clusters that the caller may see; None for all.
    clusters: tuple[str, ...] | None = None


# The values of `ORDER` in the last item of the page before.
After = tuple[datetime, str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class UsageItem:
    """How much of a meter was used in a window.

    `id` is set where it is one rolled-up row, or an hour that is a part of one.
    """

    id: str | None
    window_start: datetime
    window_end: datetime
    meter: str
    # None where the item is a sum over them, or belongs to none.
    cluster_id: str | None
    topic_id: str | None
    principal: str | None
    billed: bool
    provisional: bool
    quantity: int
    topic: str | None
    principal_name: str | None

    @property
    def unit(self) -> str:
        """The unit of the quantity."""
        return UNITS[self.meter]

    @property
    def place(self) -> After:
        """Its place in the order of lists."""
        places = (self.cluster_id or "", self.topic_id or "", self.principal or "")
        return (self.window_start, self.meter, *places, self.billed)


@dataclass(frozen=True, slots=True)
class UsagePage:
    """Items in the order of time. The next page begins after the place `after`, if there is one."""

    items: list[UsageItem]
    after: After | None


def list_usage(query: UsageQuery, *, limit: int, after: After | None = None) -> UsagePage:
    """At most `limit` items, beginning after the place `after`.

    A page of hours may have fewer, although there are more: reading files takes a bounded time.
    Raises `Unavailable` where the files of hours cannot be read.
    """
    # One row more than the page has says whether there is a next page.
    rows, behind = _read_rows(query, limit=limit + 1, after=after)
    page, more = rows[:limit], len(rows) > limit
    # Columns 2 to 4 of a row are the cluster, the topic and the principal, by `ORDER`.
    topics = topic_names((row[2], row[3]) for row in page)
    principals = names_of_principals(
        query.organization_id, {row[4] for row in page}, of_people=query.clusters is None
    )
    items = [_item(query, row, topics, principals) for row in page]
    return UsagePage(items, items[-1].place if more else behind)


def _read_rows(
    query: UsageQuery, *, limit: int, after: After | None
) -> tuple[list[HourRow], After | None]:
    """The first `limit` rows behind a place, and the place up to which fewer ones are complete."""
    behind = zip(ORDER, after, strict=True) if after else ()
    parameters: dict[str, Any] = {
        "organization": query.organization_id,
        "cell": config().cell.id,
        "start": max(query.start, after[0]) if after else query.start,
        "end": query.end,
        "limit": limit,
        "clusters": list(query.clusters or ()),
        **{name: getattr(query, name) for name in FILTERS},
        **{f"after_{name}": value for name, value in behind},
    }
    statement = _statement(query, after)
    if query.granularity == Granularity.HOUR:
        return _read_with_files(query, statement, parameters, limit=limit, after=after)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall(), None


def _read_with_files(
    query: UsageQuery,
    statement: sql.Composed,
    parameters: dict[str, Any],
    *,
    limit: int,
    after: After | None,
) -> tuple[list[HourRow], After | None]:
    """The rows of a statement, and those of files."""
    start: datetime = parameters["start"]
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(FILES_BESIDE).format(list=statement, filters=_cluster_conditions(query)),
            parameters
            | {
                "files": HoursIn.FILES.value,
                "first_day": max(start.date(), (now() - FILES_KEPT).date()),
                "last_day": query.end.date(),
            },
        )
        answer = cursor.fetchall()
    # Both are in each row.
    days, clusters = map(json.loads, answer[0][:2])
    rows = [row[2:] for row in answer if row[2] is not None]
    filters = {name: getattr(query, name) for name in FILTERS if name != "cluster_id"}
    files = FileQuery(
        organization_id=query.organization_id,
        clusters=clusters,
        days=[PublishedDay(date.fromisoformat(day), *run) for day, *run in days],
        start=start,
        # A full page of rows leaves out what is later, in files too.
        end=rows[-1][0] if len(rows) == limit else query.end,
        grouped=GROUPS[query.group_by],
        filters={name: value for name, value in filters.items() if value is not None},
    )
    of_files, read_until = list_file_hours(files, limit=limit, after=after)
    if read_until is not None:
        rows = [row for row in rows if row[0] < read_until]
    # All rows of an hour are from one place, and in order there.
    merged = sorted([*rows, *of_files], key=lambda row: row[0])[:limit]
    return merged, None if read_until is None else (read_until, "", "", "", "", False)


def complete_until(query: UsageQuery) -> datetime | None:
    """The time up to which nothing of the query's span is missing; None where no hour is known."""
    hours = JudgedHour.objects.filter(organization_id=query.organization_id)
    if query.cluster_id is not None:
        hours = hours.filter(cluster_id=query.cluster_id)
    if query.clusters is not None:
        hours = hours.filter(cluster_id__in=query.clusters)
    # Strictly after start - 1 h, so that the hour in which the span begins counts too.
    missing: datetime | None = hours.filter(complete=False, hour__gt=query.start - HOUR).aggregate(
        first=Min("hour")
    )["first"]
    if missing is not None:
        return min(max(missing, query.start), query.end)
    last: datetime | None = hours.aggregate(last=Max("hour"))["last"]
    return None if last is None else min(query.end, now())


def window_end(start: datetime, granularity: str) -> datetime:
    """The end of the window that begins at `start`."""
    if granularity == MONTH:
        following = next_month(start.date())
        return start.replace(year=following.year, month=following.month)
    lengths = {MINUTE: HOUR / 60, Granularity.HOUR.value: HOUR, Granularity.DAY.value: DAY}
    return start + lengths[granularity]


def _statement(query: UsageQuery, after: After | None) -> sql.Composed:
    places = GROUPS[query.group_by]
    sources = [_minutes_source(query, places)]
    if query.granularity != MINUTE and places == PLACES and query.granularity != MONTH:
        sources.append(_rows_source(query, after))
    elif query.granularity != MINUTE:
        sources.append(_sums_source(query, places))
    statement = sql.SQL(
        "SELECT {names}, {values} FROM ({inner}) AS used"
        " {behind} {grouped} ORDER BY {names} LIMIT %(limit)s"
    )
    # An hour or a day comes from one source only. A month may have days of both, which are summed.
    both = query.granularity == MONTH
    return statement.format(
        names=NAMES,
        values=sql.SQL(
            "min(id), sum(quantity), bool_or(provisional)" if both else "id, quantity, provisional"
        ),
        inner=sql.SQL(" UNION ALL ").join(sources),
        behind=_behind_condition("WHERE", after),
        grouped=sql.SQL("GROUP BY {}").format(NAMES) if both else sql.SQL(""),
    )


def _behind_condition(word: str, after: After | None) -> sql.Composable:
    if after is None:
        return sql.SQL("")
    values = sql.SQL(", ").join(sql.Placeholder(f"after_{name}") for name in ORDER)
    return sql.SQL("{} ({}) > ({})").format(sql.SQL(word), NAMES, values)


def _minutes_source(query: UsageQuery, places: Sequence[str]) -> sql.Composed:
    """Sums of minutes. For windows longer than a minute, only of days that are not published."""
    window: sql.Composable = sql.Identifier("minute")
    unpublished: sql.Composable = sql.SQL("")
    if query.granularity != MINUTE:
        window = _truncated("minute", query.granularity)
        unpublished = sql.SQL(
            """AND NOT EXISTS (SELECT FROM metering_rolluppointer AS pointer
               WHERE pointer.cell = %(cell)s AND NOT pointer.early
                   AND pointer.day = (minute AT TIME ZONE 'UTC')::date)"""
        )
    statement = sql.SQL(
        """SELECT {window} AS window_start, meter, {places}, billed, NULL AS id,
               sum(quantity) AS quantity, true AS provisional
           FROM metering_provisionalminute
           WHERE organization_id = %(organization)s AND minute >= %(start)s AND minute < %(end)s
               {unpublished} {filters}
           GROUP BY 1, 2, 3, 4, 5, 6"""
    )
    return statement.format(
        window=window,
        places=_place_columns(places),
        unpublished=unpublished,
        filters=_filter_conditions(query),
    )


def _rows_source(query: UsageQuery, after: After | None) -> sql.Composed:
    """Rolled-up rows by themselves, in order and limited, so that no more than a page is read."""
    statement = sql.SQL(
        """(SELECT {names}, id, quantity, false AS provisional
           FROM metering_usagerow WHERE {published} {behind} ORDER BY {names} LIMIT %(limit)s)"""
    )
    return statement.format(
        names=NAMES, published=_published_condition(query), behind=_behind_condition("AND", after)
    )


def _sums_source(query: UsageQuery, places: Sequence[str]) -> sql.Composed:
    """Sums of rolled-up rows."""
    window: sql.Composable = sql.Identifier("window_start")
    if query.granularity == MONTH:
        window = _truncated("window_start", MONTH)
    statement = sql.SQL(
        """SELECT {window} AS window_start, meter, {places}, billed, NULL AS id,
               sum(quantity) AS quantity, false AS provisional
           FROM metering_usagerow WHERE {published} GROUP BY 1, 2, 3, 4, 5, 6"""
    )
    return statement.format(
        window=window, places=_place_columns(places), published=_published_condition(query)
    )


def _published_condition(query: UsageQuery) -> sql.Composed:
    """The condition for the query's rows, which are those of current runs."""
    granularity = Granularity.HOUR if query.granularity == Granularity.HOUR else Granularity.DAY
    condition = sql.SQL(
        """organization_id = %(organization)s AND granularity = {granularity}
           AND window_start >= %(start)s AND window_start < %(end)s
           AND run_id IN (
               SELECT run_id FROM metering_rolluppointer WHERE cell = %(cell)s AND NOT early
           )
           {filters}"""
    )
    return condition.format(
        granularity=sql.Literal(granularity.value), filters=_filter_conditions(query)
    )


def _truncated(column: str, granularity: str) -> sql.Composed:
    return sql.SQL("date_trunc({}, {}, 'UTC')").format(
        sql.Literal(granularity), sql.Identifier(column)
    )


def _place_columns(grouped: Sequence[str]) -> sql.Composed:
    """The columns of `PLACES`; those that are not grouped by are empty texts."""
    return sql.SQL(", ").join(
        sql.Identifier(name)
        if name in grouped
        else sql.SQL("''::text AS {}").format(sql.Identifier(name))
        for name in PLACES
    )


def _filter_conditions(query: UsageQuery) -> sql.Composable:
    filters = [name for name in FILTERS if getattr(query, name) is not None]
    conditions: list[sql.Composable] = [
        sql.SQL("AND {} = {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in filters
        if name != "cluster_id"
    ]
    return sql.SQL(" ").join([*conditions, _cluster_conditions(query)])


def _cluster_conditions(query: UsageQuery) -> sql.Composable:
    conditions: list[sql.Composable] = []
    if query.cluster_id is not None:
        conditions.append(sql.SQL("AND cluster_id = %(cluster_id)s"))
    if query.clusters is not None:
        conditions.append(sql.SQL("AND cluster_id = ANY(%(clusters)s)"))
    return sql.SQL(" ").join(conditions)


def _item(
    query: UsageQuery,
    row: Sequence[Any],
    topics: Mapping[tuple[str, str], str],
    principals: Mapping[str, str],
) -> UsageItem:
    start, meter, cluster_id, topic_id, principal, billed, row_id, quantity, provisional = row
    return UsageItem(
        id=row_id,
        window_start=start,
        window_end=window_end(start, query.granularity),
        meter=meter,
        cluster_id=cluster_id or None,
        topic_id=topic_id or None,
        topic=topics.get((cluster_id, topic_id)),
        principal=principal or None,
        principal_name=principals.get(principal),
        billed=billed,
        provisional=provisional,
        quantity=int(quantity),
    )


def topic_names(topics: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(cluster, topic id) → name, for the topics that have one."""
    with_topic = sorted({topic for topic in topics if topic[1]})
    if not with_topic:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(TOPIC_NAMES, [list(column) for column in zip(*with_topic, strict=True)])
        return {(cluster, topic): name for cluster, topic, name in cursor.fetchall()}
