"""The statements of running totals, put together of constants.

`running.py` executes those that write, `comparing.py` those that compare, `month_usage.py` those
that read.
"""

from __future__ import annotations

from metering.choices import PART_METERS, Granularity, PartKind
from metering.ranks import COUNTS_FOR, rank_of

FINAL_DAYS = "SELECT day FROM metering_rolluppointer WHERE cell = %(cell)s AND NOT early"
_COLUMNS = ", ".join(PART_METERS)
_PIVOTED = ", ".join(
    f"coalesce(sum(quantity) FILTER (WHERE meter = '{meter}'), 0) AS {meter}"
    for meter in PART_METERS
)
_SUMMED = ", ".join(f"sum({meter}) AS {meter}" for meter in PART_METERS)
_NEGATED = ", ".join(f"-{meter}" for meter in PART_METERS)
_ADDED = ", ".join(f"{meter} = known.{meter} + EXCLUDED.{meter}" for meter in PART_METERS)
_PLACES = (
    f"LATERAL (VALUES ('{PartKind.TOPIC.value}', topic_id),"
    f" ('{PartKind.PRINCIPAL.value}', principal)) AS place (kind, name)"
)


def parts_of(rows: str) -> str:
    """A query of the parts in the rows of a table, of which each is a topic's and a principal's."""
    return (
        f"SELECT organization_id, cluster_id, day, kind, name, {_PIVOTED} FROM {rows}, {_PLACES}"
        f" WHERE meter IN ({', '.join(repr(meter) for meter in PART_METERS)})"
        " GROUP BY organization_id, cluster_id, day, kind, name"
    )


def _upsert_parts(table: str, period: str, source: str) -> str:
    """Adds the parts of `source` to a table whose key has `period`, an expression of the day."""
    column = period.rpartition(" ")[2]
    return f"""
    INSERT INTO {table} AS known (organization_id, cluster_id, {column}, kind, name, {_COLUMNS})
    SELECT organization_id, cluster_id, {period}, kind, name, {_SUMMED} FROM {source}
    GROUP BY organization_id, cluster_id, 3, kind, name
    ORDER BY organization_id, cluster_id, 3, kind, name
    ON CONFLICT (organization_id, cluster_id, {column}, kind, name) DO UPDATE SET {_ADDED}"""


def _upsert_sums(table: str, period: str, source: str) -> str:
    """Adds the quantities of `source` by meter to a table whose key has `period`."""
    column = period.rpartition(" ")[2]
    return f"""
    INSERT INTO {table} AS known (organization_id, cluster_id, {column}, meter, quantity)
    SELECT organization_id, cluster_id, {period}, meter, sum(quantity) FROM {source}
    GROUP BY organization_id, cluster_id, 3, meter
    ORDER BY organization_id, cluster_id, 3, meter
    ON CONFLICT (organization_id, cluster_id, {column}, meter)
    DO UPDATE SET quantity = known.quantity + EXCLUDED.quantity"""


_MONTH = "date_trunc('month', day)::date AS month"
# Adds rows of `changes` (by meter) and of `parts` to the totals of their days and months.
_APPLY = f"""
by_day AS ({_upsert_sums("metering_runningday", "day", "changes")}
), by_month AS ({_upsert_sums("metering_runningmonth", _MONTH, "changes")}
)
{_upsert_parts("metering_monthpart", _MONTH, "parts")}
"""
# Adds to the minutes, and to all that follows from them.
#
# A window of several minutes is spread evenly over them. The difference of two whole quotients for
# each minute makes the shares sum to the quantity exactly.
ADD_MINUTES = f"""
WITH spread AS MATERIALIZED (
    SELECT organization_id, cluster_id, topic_id, principal, meter, billed,
        to_timestamp((start_ms / 1000 + 60 * i)::double precision) AS minute,
        sum(share) AS quantity
    FROM unnest(%(organization_id)s::text[], %(cluster_id)s::text[], %(topic_id)s::text[],
            %(principal)s::text[], %(meter)s::text[], %(billed)s::boolean[],
            %(window_start_ms)s::bigint[], %(minutes)s::int[], %(quantity)s::numeric[])
        AS added (organization_id, cluster_id, topic_id, principal, meter, billed,
            start_ms, minutes, quantity),
        LATERAL generate_series(0, minutes - 1) AS i,
        LATERAL (SELECT div((i + 1) * quantity, minutes) - div(i * quantity, minutes))
            AS part (share)
    WHERE share > 0
        AND to_timestamp((start_ms / 1000 + 60 * i)::double precision) >= %(keep_from)s
    GROUP BY 1, 2, 3, 4, 5, 6, 7
), by_minute AS (
    INSERT INTO metering_provisionalminute AS known
        (organization_id, cluster_id, topic_id, principal, meter, billed, minute, quantity)
    SELECT organization_id, cluster_id, topic_id, principal, meter, billed, minute, quantity
    FROM spread
    ON CONFLICT (cluster_id, minute, meter, topic_id, principal, billed)
    DO UPDATE SET quantity = known.quantity + EXCLUDED.quantity
), by_hour AS (
    INSERT INTO metering_runninghour AS known
        (organization_id, cluster_id, hour, meter, quantity, first_minute, last_minute)
    SELECT organization_id, cluster_id, date_trunc('hour', minute, 'UTC'), meter, sum(quantity),
        min(minute), max(minute)
    FROM spread WHERE billed AND meter = ANY(%(accruing)s)
    GROUP BY organization_id, cluster_id, 3, meter
    ORDER BY organization_id, cluster_id, 3, meter
    ON CONFLICT (organization_id, cluster_id, hour, meter)
    DO UPDATE SET quantity = known.quantity + EXCLUDED.quantity,
        first_minute = least(known.first_minute, EXCLUDED.first_minute),
        last_minute = greatest(known.last_minute, EXCLUDED.last_minute)
), changes AS MATERIALIZED (
    SELECT organization_id, cluster_id, topic_id, principal, meter,
        (minute AT TIME ZONE 'UTC')::date AS day, sum(quantity) AS quantity
    FROM spread
    WHERE billed AND (minute AT TIME ZONE 'UTC')::date NOT IN ({FINAL_DAYS})
    GROUP BY 1, 2, 3, 4, 5, 6
), parts AS MATERIALIZED ({parts_of("changes")}
), by_provisional_part AS ({_upsert_parts("metering_provisionalpart", "day", "parts")}
), {_APPLY}"""
# Replaces what a day counts from. What it counted from before are the rows of the run `replaced`,
# or its minutes: then the table of provisional parts has their sums.
FOLD_RUN = f"""
WITH run AS MATERIALIZED (
    SELECT run_id, organization_id, cluster_id, topic_id, principal, meter,
        %(day)s::date AS day, quantity
    FROM metering_usagerow
    WHERE run_id IN (%(run)s, %(replaced)s) AND granularity = '{Granularity.DAY.value}' AND billed
), new AS (SELECT * FROM run WHERE run_id = %(run)s
), old AS (SELECT * FROM run WHERE run_id = %(replaced)s
), changes AS MATERIALIZED (
    SELECT organization_id, cluster_id, day, meter, quantity FROM new
    UNION ALL
    SELECT organization_id, cluster_id, day, meter, -quantity FROM metering_runningday
    WHERE day = %(day)s
), removed AS (
    DELETE FROM metering_provisionalpart WHERE day = %(day)s RETURNING *
), parts AS MATERIALIZED (
    {parts_of("new")}
    UNION ALL
    SELECT organization_id, cluster_id, day, kind, name, {_NEGATED} FROM removed
    UNION ALL
    SELECT organization_id, cluster_id, day, kind, name, {_NEGATED}
    FROM ({parts_of("old")}) AS of_old
), {_APPLY}"""
# What counts in a month, and which part of it from minutes: the rule that the totals follow.
COUNTED = f"""
WITH final AS MATERIALIZED (
    SELECT day, run_id FROM metering_rolluppointer
    WHERE cell = %(cell)s AND NOT early AND day >= %(first)s AND day < %(end)s
), counted AS MATERIALIZED (
    SELECT organization_id, cluster_id, topic_id, principal, meter, day, false AS provisional,
        sum(quantity) AS quantity
    FROM final JOIN metering_usagerow USING (run_id)
    WHERE granularity = '{Granularity.DAY.value}' AND billed
    GROUP BY organization_id, cluster_id, topic_id, principal, meter, day
    UNION ALL
    SELECT organization_id, cluster_id, topic_id, principal, meter,
        (minute AT TIME ZONE 'UTC')::date, true, sum(quantity)
    FROM metering_provisionalminute
    WHERE billed AND minute >= %(start)s AND minute < %(until)s
        AND (minute AT TIME ZONE 'UTC')::date NOT IN (SELECT day FROM final)
    GROUP BY organization_id, cluster_id, topic_id, principal, meter, 6
)"""
REBUILD = (
    f"""{COUNTED}, changes AS MATERIALIZED (SELECT * FROM counted
), parts AS MATERIALIZED ({parts_of("counted")}
), provisional AS MATERIALIZED (SELECT * FROM counted WHERE provisional
), provisional_parts AS MATERIALIZED ({parts_of("provisional")}
), by_provisional_part AS ("""
    f"""{_upsert_parts("metering_provisionalpart", "day", "provisional_parts")}
), {_APPLY}"""
)
EMPTY_MONTH = (
    "DELETE FROM metering_runningmonth WHERE month = %(first)s",
    "DELETE FROM metering_runningday WHERE day >= %(first)s AND day < %(end)s",
    "DELETE FROM metering_monthpart WHERE month = %(first)s",
    "DELETE FROM metering_provisionalpart WHERE day >= %(first)s AND day < %(end)s",
)
REBUILD_HOURS = """
INSERT INTO metering_runninghour
    (organization_id, cluster_id, hour, meter, quantity, first_minute, last_minute)
SELECT organization_id, cluster_id, date_trunc('hour', minute, 'UTC'), meter, sum(quantity),
    min(minute), max(minute)
FROM metering_provisionalminute
WHERE billed AND meter = ANY(%(accruing)s) AND minute >= %(hours_from)s
GROUP BY organization_id, cluster_id, 3, meter
"""
_QUANTITIES = f"ARRAY[{', '.join(PART_METERS)}]::numeric[]"
# By table: what is kept, and what its rows sum to, as `place` (texts) and `quantities`.
SIDES = {
    "metering_runningmonth": (
        """SELECT ARRAY[organization_id, cluster_id, meter] AS place,
            ARRAY[quantity] AS quantities
        FROM metering_runningmonth WHERE month = %(first)s""",
        """SELECT ARRAY[organization_id, cluster_id, meter] AS place,
            ARRAY[sum(quantity)] AS quantities
        FROM counted GROUP BY organization_id, cluster_id, meter""",
    ),
    "metering_runningday": (
        """SELECT ARRAY[organization_id, cluster_id, meter, day::text] AS place,
            ARRAY[quantity] AS quantities
        FROM metering_runningday WHERE day >= %(first)s AND day < %(end)s""",
        """SELECT ARRAY[organization_id, cluster_id, meter, day::text] AS place,
            ARRAY[sum(quantity)] AS quantities
        FROM counted GROUP BY organization_id, cluster_id, meter, day""",
    ),
    "metering_monthpart": (
        f"""SELECT ARRAY[organization_id, cluster_id, kind, name] AS place,
            {_QUANTITIES} AS quantities
        FROM metering_monthpart WHERE month = %(first)s""",
        f"""SELECT ARRAY[organization_id, cluster_id, kind, name] AS place,
            {_QUANTITIES} AS quantities
        FROM ({parts_of("(SELECT *, date '2000-01-01' AS day FROM of_month) AS of_month")})
            AS parts""",
    ),
    "metering_provisionalpart": (
        f"""SELECT ARRAY[organization_id, cluster_id, day::text, kind, name] AS place,
            {_QUANTITIES} AS quantities
        FROM metering_provisionalpart WHERE day >= %(first)s AND day < %(end)s""",
        f"""SELECT ARRAY[organization_id, cluster_id, day::text, kind, name] AS place,
            {_QUANTITIES} AS quantities
        FROM ({parts_of("provisional")}) AS parts""",
    ),
}
COMPARISON = """
{counted}, of_month AS (
    SELECT organization_id, cluster_id, topic_id, principal, meter, quantity FROM counted
), provisional AS (SELECT * FROM counted WHERE provisional
), kept AS ({kept}
), summed AS ({summed}
), compared AS (
    SELECT place, kept.quantities AS kept, summed.quantities AS summed
    FROM (SELECT * FROM kept WHERE 0 <> ANY (quantities)) AS kept
    FULL JOIN (SELECT * FROM summed WHERE 0 <> ANY (quantities)) AS summed USING (place)
)
SELECT count(*) OVER (), place, kept, summed FROM compared
WHERE kept IS DISTINCT FROM summed ORDER BY place LIMIT %(limit)s
"""
COMPARE_HOURS = """
WITH summed AS (
    SELECT organization_id, cluster_id, date_trunc('hour', minute, 'UTC') AS hour, meter,
        sum(quantity) AS quantity, min(minute) AS first_minute, max(minute) AS last_minute
    FROM metering_provisionalminute
    WHERE billed AND meter = ANY(%(accruing)s) AND minute >= %(hours_from)s
    GROUP BY 1, 2, 3, 4
), kept AS (
    SELECT organization_id, cluster_id, hour, meter, quantity, first_minute, last_minute
    FROM metering_runninghour WHERE hour >= %(hours_from)s
), compared AS (
    SELECT organization_id, cluster_id, hour, meter,
        (kept.quantity, kept.first_minute, kept.last_minute)
            IS DISTINCT FROM (summed.quantity, summed.first_minute, summed.last_minute) AS differs,
        kept.quantity AS kept, summed.quantity AS summed
    FROM kept FULL JOIN summed USING (organization_id, cluster_id, hour, meter)
)
SELECT count(*) OVER (), ARRAY[organization_id, cluster_id, meter, hour::text], ARRAY[kept],
    ARRAY[summed]
FROM compared WHERE differs ORDER BY 2 LIMIT %(limit)s
"""
# (cluster, meter) with its days, and their quantities as one text: thousands are read faster so.
DAYS_OF_MONTH = """
SELECT cluster_id, meter, array_agg(day), string_agg(quantity::text, ',')
FROM metering_runningday
WHERE organization_id = %(organization)s AND day >= %(start)s AND day < %(end)s AND quantity <> 0
GROUP BY cluster_id, meter
"""
# A rate is of the newest hour that a cluster has of a meter, and the one before it.
ACCRUING_RATES = """
WITH newest AS (
    SELECT hour FROM metering_runninghour WHERE organization_id = %(organization)s
    ORDER BY hour DESC LIMIT 1
), recent AS MATERIALIZED (
    SELECT cluster_id, meter, hour, quantity, first_minute, last_minute,
        max(hour) OVER (PARTITION BY cluster_id, meter) AS latest
    FROM metering_runninghour WHERE organization_id = %(organization)s
        AND hour >= (SELECT hour FROM newest) - %(age_max)s - %(basis)s
)
SELECT cluster_id, meter, div(
    sum(quantity), trunc(extract(epoch FROM max(last_minute) - min(first_minute)) / 60) + 1
)
FROM recent WHERE hour >= latest - %(basis)s
GROUP BY cluster_id, meter
HAVING max(last_minute) > (SELECT max(last_minute) FROM recent) - %(age_max)s
"""
# In floating point, as it decides only which parts are named where there are very many.
_COST = " + ".join(f"part.{meter}::float8 * rate.{meter}" for meter in PART_METERS)
_TOTALS = ", ".join(
    f"coalesce(sum(quantity) FILTER (WHERE meter = '{meter}'), 0)" for meter in PART_METERS
)
_WEIGHTS = ", ".join(f"%({meter})s::float8[]" for meter in PART_METERS)
# The quantities of the parts that are chosen, and the totals of all clusters.
_NAMED = f"""
SELECT chosen.kind, part.cluster_id, part.name, {", ".join(f"part.{m}" for m in PART_METERS)}
FROM chosen JOIN metering_monthpart AS part ON part.organization_id = %(organization)s
    AND part.cluster_id = chosen.cluster_id AND part.month = %(month)s
    AND part.kind = chosen.kind AND part.name = chosen.name
UNION ALL
SELECT NULL, cluster_id, NULL, {_TOTALS} FROM metering_runningmonth
WHERE organization_id = %(organization)s AND month = %(month)s AND cluster_id = ANY(%(clusters)s)
GROUP BY cluster_id
"""


def _greatest(kind: str) -> str:
    """The dearest parts of a kind, of two looks.

    The first one reads the `looked` parts of the highest ranks: as much as the `limit`-th of them
    costs, the dearest cost at least. The second one reads all parts that may cost as much, by their
    rank. The lowest rank is a column, because row security lets no index compare with an
    expression of functions that might tell what they are given.
    """
    parts = f"""metering_monthpart AS part WHERE part.organization_id = %(organization)s
            AND part.month = %(month)s AND part.kind = %({kind})s"""
    # No part of a cluster in which nothing costs anything.
    least = "coalesce(least.cost, 0) / nullif(rate.cost_max, 0)"
    return f"""{kind}_least AS (
    SELECT {_COST} AS cost FROM rate
        JOIN (SELECT * FROM {parts} ORDER BY part.rank DESC LIMIT %(looked)s) AS part
        USING (cluster_id)
    ORDER BY cost DESC OFFSET %(limit)s - 1 LIMIT 1
), {kind}_rate AS MATERIALIZED (
    SELECT rate.*, {rank_of(least)} - 1 AS rank_min
    FROM rate LEFT JOIN {kind}_least AS least ON true
), {kind}_chosen AS (
    SELECT part.kind, part.cluster_id, part.name, part.cost FROM {kind}_rate AS rate, LATERAL (
        SELECT part.kind, part.cluster_id, part.name, {_COST} AS cost FROM {parts}
            AND part.cluster_id = rate.cluster_id AND part.rank >= rate.rank_min OFFSET 0
    ) AS part ORDER BY part.cost DESC, part.cluster_id, part.name LIMIT %(limit)s
)"""


NAMED_PARTS = f"""
WITH chosen AS MATERIALIZED (
    SELECT * FROM unnest(%(kinds)s::text[], %(owners)s::text[], %(names)s::text[])
        AS chosen (kind, cluster_id, name)
)
{_NAMED}"""
# The most that what counts for 1 in a rank costs in a cluster.
_COST_MAX = ", ".join(f"{meter} / {COUNTS_FOR[meter]!r}" for meter in PART_METERS)
GREATEST_PARTS = f"""
WITH rate AS MATERIALIZED (
    SELECT *, greatest({_COST_MAX}) AS cost_max
    FROM unnest(%(clusters)s::text[], {_WEIGHTS}) AS rate (cluster_id, {_COLUMNS})
), {_greatest("topic")}, {_greatest("principal")}, chosen AS MATERIALIZED (
    SELECT * FROM topic_chosen UNION ALL SELECT * FROM principal_chosen
)
{_NAMED}"""
