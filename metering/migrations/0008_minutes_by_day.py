"""Minutes lie in a table with a part for each day, of which a published one is dropped as a whole.

Rows of the release before are not copied: their table becomes a part, of all days up to a bound
that lies a few days ahead. Each step is a transaction of its own, and none keeps others from the
table for longer than it takes to change the catalog. A step that could not have its lock in time
fails, and the migration may be run again.
"""

from __future__ import annotations

from django.db import migrations, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.utils import CursorWrapper
from django.db.migrations.state import StateApps
from psycopg import sql

from console.base.common.conf import config
from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING, enable_rls

TABLE = """
CREATE TABLE public.metering_provisionalminute (
    organization_id varchar(32) NOT NULL,
    cluster_id varchar(32) NOT NULL,
    topic_id varchar(32) NOT NULL,
    principal text NOT NULL,
    meter varchar(32) NOT NULL,
    minute timestamptz NOT NULL,
    quantity numeric(38, 0) NOT NULL,
    billed boolean NOT NULL,
    PRIMARY KEY (cluster_id, minute, meter, topic_id, principal, billed)
) PARTITION BY RANGE (minute)
"""
INDEXES = (
    "CREATE INDEX minutes_by_time ON public.metering_provisionalminute (organization_id, minute)",
    "CREATE INDEX minutes_to_remove ON public.metering_provisionalminute (minute)",
)
# The longest wait for a lock: others wait behind whoever waits for one.
PATIENCE = "SET LOCAL lock_timeout = '5s'"
IS_DIVIDED = """
SELECT relkind = 'p' FROM pg_class WHERE oid = 'public.metering_provisionalminute'::regclass
"""
# Days after the newest minute, or today, that the part with the rows from before has room for: so
# long processes of the release before go on writing.
AHEAD_DAYS = 3
BOUND = """
SELECT to_char(greatest(max(minute), now()) AT TIME ZONE 'UTC' + make_interval(days => %s),
    'YYYYMMDD')
FROM public.metering_provisionalminute
"""
# The parts lie in a schema of their own, in which the serving role has no rights: it reaches them
# through the table alone, whose row-level security holds. Only their owner may make and drop them,
# so the functions run as their own owner. A part is named `day_YYYYMMDD`, or `before_YYYYMMDD` for
# what was there before this release.
#
# A new part is made apart and attached then: that keeps nobody from reading and writing the others.
MAKE = """
CREATE OR REPLACE FUNCTION metering_make_minute_parts(days bigint[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    day date;
    part text;
    made integer := 0;
BEGIN
    FOR day IN SELECT DISTINCT date '1970-01-01' + number::integer FROM unnest(days) AS number
        ORDER BY 1
    LOOP
        part := to_char(day, '"day_"YYYYMMDD');
        CONTINUE WHEN to_regclass(format('minutes.%I', part)) IS NOT NULL;
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = 'public.metering_provisionalminute'::regclass
            AND relname LIKE 'before\\_%' AND to_date(right(relname, 8), 'YYYYMMDD') > day
        );
        IF made = 400 THEN
            RAISE EXCEPTION 'usage of more than % new days at once', made
                USING ERRCODE = 'data_exception';
        END IF;
        EXECUTE format(
            'CREATE TABLE minutes.%I (LIKE public.metering_provisionalminute INCLUDING ALL)', part
        );
        EXECUTE format(
            'ALTER TABLE public.metering_provisionalminute'
            ' ATTACH PARTITION minutes.%I FOR VALUES FROM (%L) TO (%L)',
            part, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'
        );
        made := made + 1;
    END LOOP;
    RETURN made;
END $$
"""
# Others wait behind whoever waits for a lock, and ingest tries again every 15 s: so it waits for a
# moment only, however long somebody reads (a backup, for one).
#
# A day counts from its minutes until a pointer that is final names its run, and pointers stay
# final. So a part may go once each day that it has minutes of is published.
DROP = """
CREATE OR REPLACE FUNCTION metering_drop_minute_parts(cell_id text, until date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    part text;
    day date;
    is_counted boolean;
    dropped integer := 0;
BEGIN
    FOR part IN
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'public.metering_provisionalminute'::regclass ORDER BY relname
    LOOP
        day := to_date(substring(part FROM '_(.*)'), 'YYYYMMDD');
        IF part LIKE 'day\\_%' THEN
            CONTINUE WHEN day >= until;
            is_counted := NOT EXISTS (
                SELECT FROM public.metering_rolluppointer AS pointer
                WHERE pointer.cell = cell_id AND pointer.day = to_date(right(part, 8), 'YYYYMMDD')
                AND NOT pointer.early
            );
        ELSE
            CONTINUE WHEN day > until;
            EXECUTE format(
                'SELECT EXISTS (SELECT FROM minutes.%I WHERE NOT EXISTS ('
                ' SELECT FROM public.metering_rolluppointer AS pointer WHERE pointer.cell = $1'
                ' AND pointer.day = (minute AT TIME ZONE ''UTC'')::date AND NOT pointer.early))',
                part
            ) INTO is_counted USING cell_id;
        END IF;
        CONTINUE WHEN is_counted;
        EXECUTE format('DROP TABLE minutes.%I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$
"""
FUNCTIONS = ("metering_make_minute_parts(bigint[])", "metering_drop_minute_parts(text, date)")


def divide_table(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Puts a table with parts in the table's place, and makes the table one of its parts."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute(IS_DIVIDED)
        if cursor.fetchone() == (True,):
            return
        bound = _bound_rows(connection)
        # Reads all rows, while others read and write them.
        cursor.execute(
            "ALTER TABLE public.metering_provisionalminute"
            " VALIDATE CONSTRAINT metering_minutes_before"
        )
        with transaction.atomic(using=connection.alias):
            cursor.execute(PATIENCE)
            _put_in_place(cursor, bound)


def _bound_rows(connection: BaseDatabaseWrapper) -> str:
    """Has the table take no row from a day on (`YYYYMMDD`), which it returns."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(PATIENCE)
        cursor.execute("SELECT set_config(%s, %s, true)", [SETTING, EVERY_ORGANIZATION])
        cursor.execute("LOCK TABLE public.metering_provisionalminute IN ACCESS EXCLUSIVE MODE")
        cursor.execute(BOUND, [AHEAD_DAYS])
        bound = str(cursor.fetchall()[0][0])
        cursor.execute(
            sql.SQL(
                "ALTER TABLE public.metering_provisionalminute"
                " DROP CONSTRAINT IF EXISTS metering_minutes_before,"
                " ADD CONSTRAINT metering_minutes_before CHECK (minute < {}) NOT VALID"
            ).format(sql.Literal(_midnight(bound)))
        )
    return bound


def _put_in_place(cursor: CursorWrapper, bound: str) -> None:
    """The exchange of the tables, in the caller's transaction."""
    name = sql.Identifier(f"before_{bound}")
    places = {
        "name": name,
        "part": sql.Identifier("minutes", f"before_{bound}"),
        "role": sql.Identifier(config().database.app_user),
        "bound": sql.Literal(_midnight(bound)),
    }
    for text in (
        "ALTER TABLE public.metering_provisionalminute SET SCHEMA minutes",
        "ALTER TABLE minutes.metering_provisionalminute RENAME TO {name}",
        "REVOKE ALL ON {part} FROM {role}",
        "DROP POLICY organization ON {part}",
        "ALTER TABLE {part} NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE {part} DISABLE ROW LEVEL SECURITY",
        TABLE,
        *INDEXES,
        *_security(),
        # The constraint says that no row lies outside, so that none is read here.
        "ALTER TABLE public.metering_provisionalminute"
        " ATTACH PARTITION {part} FOR VALUES FROM (MINVALUE) TO ({bound})",
        "ALTER TABLE {part} DROP CONSTRAINT metering_minutes_before",
    ):
        cursor.execute(sql.SQL(text).format(**places))
    cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {part})").format(**places))
    if cursor.fetchone() == (False,):
        cursor.execute(sql.SQL("DROP TABLE {part}").format(**places))


def unite_table(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Copies all parts into one table again."""
    connection = schema_editor.connection
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [SETTING, EVERY_ORGANIZATION])
        cursor.execute("ALTER TABLE public.metering_provisionalminute SET SCHEMA minutes")
        for text in (TABLE.rpartition("PARTITION")[0], *INDEXES, *_security()):
            cursor.execute(text)
        cursor.execute(
            "INSERT INTO public.metering_provisionalminute (organization_id, cluster_id, topic_id,"
            " principal, meter, minute, quantity, billed)"
            " SELECT organization_id, cluster_id, topic_id, principal, meter, minute, quantity,"
            " billed FROM minutes.metering_provisionalminute"
        )
        cursor.execute("DROP TABLE minutes.metering_provisionalminute")


def _security() -> list[str]:
    return [str(statement) for statement in enable_rls("metering_provisionalminute").sql]


def _midnight(day: str) -> str:
    """Midnight UTC at the beginning of a day that is written `YYYYMMDD`, as PostgreSQL reads it."""
    return f"{day[:-4]}-{day[-4:-2]}-{day[-2:]} 00:00:00+00"


def _permit() -> migrations.RunSQL:
    role = sql.Identifier(config().database.app_user).as_string(None)
    return migrations.RunSQL(
        [
            f"REVOKE ALL ON FUNCTION {', '.join(FUNCTIONS)} FROM PUBLIC",
            f"GRANT EXECUTE ON FUNCTION {', '.join(FUNCTIONS)} TO {role}",
        ],
        migrations.RunSQL.noop,
    )


class Migration(migrations.Migration):
    """The model stays as it is; what changes is how its rows lie."""

    atomic = False
    dependencies = [("metering", "0007_running_totals")]
    operations = [
        migrations.RunSQL("CREATE SCHEMA IF NOT EXISTS minutes", "DROP SCHEMA minutes"),
        migrations.RunPython(divide_table, unite_table),
        *(
            migrations.RunSQL(text, f"DROP FUNCTION {name}")
            for text, name in zip((MAKE, DROP), FUNCTIONS, strict=True)
        ),
        _permit(),
    ]
