"""How many bytes topics hold now: those of the newest minute in which storage was metered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg import sql

from console.base.common.clock import now
from metering.choices import UsageMeter
from metering.periods import MINUTES_KEPT

# In a minute, a byte that is stored is a byte-minute. Where a metered minute has no row, nothing
# was stored in it.
#
# Materialized, so that a minute is a value when the minutes are read. PostgreSQL evaluates nothing
# that may fail, as `to_timestamp` may, before row security has passed a row: it would read all
# minutes of the cluster to find those of one.
STORED = sql.SQL(
    """
WITH metered AS MATERIALIZED (
    SELECT cluster_id, to_timestamp((upper(storage_ms) / 60000 - 1) * 60) AS minute
    FROM metering_clustercoverage
    WHERE organization_id = %(organization)s AND closed_at_ms IS NULL AND NOT isempty(storage_ms)
        {clusters}
)
SELECT metered.cluster_id, coalesce(sum(used.quantity), 0), metered.minute
FROM metered
LEFT JOIN metering_provisionalminute AS used
    ON used.cluster_id = metered.cluster_id AND used.minute = metered.minute
    AND used.meter = %(meter)s AND used.billed {topic}
WHERE metered.minute >= %(kept_from)s
GROUP BY metered.cluster_id, metered.minute
ORDER BY metered.cluster_id
"""
)


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """The bytes that the billed topics of a cluster held in the minute that began at `at`."""

    cluster_id: str
    bytes: int
    at: datetime


def stored_now(
    organization_id: str,
    *,
    cluster_id: str | None = None,
    topic_id: str | None = None,
    clusters: Collection[str] | None = None,
) -> list[StoredCluster]:
    """What the topics of each cluster hold, or what one topic does; reads in the caller's scope.

    `clusters`: those that the caller may see; None for all. A cluster that is gone is left out,
    and one whose storage was not metered for so long that its minutes are gone.
    """
    conditions: list[sql.Composable] = []
    if cluster_id is not None:
        conditions.append(sql.SQL("AND cluster_id = %(cluster)s"))
    if clusters is not None:
        conditions.append(sql.SQL("AND cluster_id = ANY(%(clusters)s)"))
    topic = sql.SQL("" if topic_id is None else "AND used.topic_id = %(topic)s")
    parameters: dict[str, Any] = {
        "organization": organization_id,
        "cluster": cluster_id,
        "clusters": list(clusters or ()),
        "topic": topic_id,
        "meter": UsageMeter.STORAGE_BYTE_MINUTES.value,
        "kept_from": now() - MINUTES_KEPT,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            STORED.format(clusters=sql.SQL(" ").join(conditions), topic=topic), parameters
        )
        return [StoredCluster(cluster, int(held), at) for cluster, held, at in cursor.fetchall()]
