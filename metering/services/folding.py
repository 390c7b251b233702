"""Folds the smallest pairs of a topic and a principal of a day, before the day is published.

PostgreSQL keeps the day of each topic, and of a cluster's largest pairs. The files of the run keep
all of them, and so the hours that are read from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

from metering.events.records import OTHERS, SERVICE_PRINCIPAL

# So many pairs of a cluster are kept apart, of each meter. With the number of its topics it bounds
# the rows of a day, whatever a tenant's principals do.
PAIRS_MAX = 1_000
# Returns what the pairs beyond that sum to, by topic. What was counted together before is counted
# with them, so that no key is there twice.
TAKE_SMALL = """
WITH ranked AS (
    SELECT id, principal,
        row_number() OVER (of_meter ORDER BY principal = %(others)s, quantity DESC, id) AS place,
        count(*) FILTER (WHERE principal <> %(others)s) OVER of_meter AS pairs
    FROM metering_stagedrow
    WHERE run_id = %(run)s AND principal NOT IN ('', %(service)s)
    WINDOW of_meter AS (PARTITION BY organization_id, cluster_id, meter, billed)
), small AS (
    DELETE FROM metering_stagedrow AS staged USING ranked
    WHERE staged.id = ranked.id AND ranked.pairs > %(pairs_max)s
        AND (ranked.place > %(pairs_max)s OR ranked.principal = %(others)s)
    RETURNING staged.*
)
SELECT cluster_id, topic_id, %(others)s, meter, window_start_ms, billed,
    granularity, organization_id, window_end_ms, sum(quantity)
FROM small GROUP BY 1, 2, 4, 5, 6, 7, 8, 9
"""
ADD_SUMS = """
INSERT INTO metering_stagedrow (id, run_id, cluster_id, topic_id, principal, meter,
    window_start_ms, billed, granularity, organization_id, window_end_ms, quantity)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
KEY_COLUMNS = 6


def fold_pairs(run_id: str, id_of: Callable[[Sequence[object]], str]) -> int:
    """Folds the staged days of a run; returns how many rows of sums there are.

    `id_of` returns the id of a row by its key: cluster, topic, principal, meter, start of the
    window in milliseconds, whether it is billed.
    """
    names = {"others": OTHERS, "service": SERVICE_PRINCIPAL}
    with connection.cursor() as cursor:
        cursor.execute(TAKE_SMALL, {"run": run_id, "pairs_max": PAIRS_MAX, **names})
        sums: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.executemany(ADD_SUMS, [(id_of(row[:KEY_COLUMNS]), run_id, *row) for row in sums])
    return len(sums)
