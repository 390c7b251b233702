"""Usage as the API lists it: rolled-up rows of published days, and minutes of other days.

Each list is one statement, so that a day that is published at this moment counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min
from psycopg import sql

from console.base.accounts.principals import names_of_principals
from console.base.common.clock import now
from console.base.common.conf import config
from metering.choices import UNITS, Granularity
from metering.models import JudgedHour
from metering.periods import DAY, HOUR, next_month

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
    """How much of a meter was used in a window. `id` is set where it is one rolled-up row."""

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


def list_usage(query: UsageQuery, *, limit: int, after: After | None = None) -> list[UsageItem]:
    """At most `limit` items in the order of time, beginning after the place `after`."""
    statement = _statement(query, after)
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
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    # Columns 2 to 4 of a row are the cluster, the topic and the principal, by `ORDER`.
    topics = topic_names((row[2], row[3]) for row in rows)
    principals = names_of_principals(
        query.organization_id, {row[4] for row in rows}, of_people=query.clusters is None
    )
    return [_item(query, row, topics, principals) for row in rows]


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
    ]
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
