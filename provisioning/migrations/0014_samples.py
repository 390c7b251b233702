"""The newest sample of each cluster, and series of them in tables with a part for each day."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from psycopg import sql

import console.base.common.clock
from console.base.common.conf import config
from console.base.common.tenancy import enable_rls

TABLE = """
CREATE TABLE provisioning_sample{kind} (
    organization_id varchar(32) NOT NULL,
    cluster_id varchar(32) NOT NULL,
    at timestamptz NOT NULL,
    series jsonb NOT NULL,
    PRIMARY KEY (cluster_id, at)
) PARTITION BY RANGE (at)
"""
# The parts lie in a schema of their own, in which the serving role has no rights: it reaches them
# through the tables alone, whose row-level security holds. Only their owner may make and drop them,
# so the function runs as its own owner.
PARTS = """
CREATE FUNCTION provisioning_keep_sample_parts(today date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    kept record;
    day date;
    part text;
    changed integer := 0;
BEGIN
    FOR kept IN SELECT * FROM (VALUES ('minute', 1), ('hour', 30)) AS v (kind, days) LOOP
        FOR day IN SELECT today + n FROM generate_series(-kept.days, 2) AS n LOOP
            part := kept.kind || to_char(day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass(format('samples.%I', part)) IS NOT NULL;
            EXECUTE format(
                'CREATE TABLE samples.%I PARTITION OF public.%I FOR VALUES FROM (%L) TO (%L)',
                part, 'provisioning_sample' || kept.kind,
                day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'
            );
            changed := changed + 1;
        END LOOP;
        FOR part IN
            SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = format('public.%I', 'provisioning_sample' || kept.kind)::regclass
            AND relname < kept.kind || to_char(today - kept.days, '_YYYYMMDD')
        LOOP
            EXECUTE format('DROP TABLE samples.%I', part);
            changed := changed + 1;
        END LOOP;
    END LOOP;
    RETURN changed;
END $$
"""
ARGUMENTS = "provisioning_keep_sample_parts(date)"


def _over_time(kind: str, name: str) -> migrations.SeparateDatabaseAndState:
    """A table of series with parts, and Django's model of it."""
    return migrations.SeparateDatabaseAndState(
        database_operations=[
            migrations.RunSQL(
                TABLE.format(kind=kind), f"DROP TABLE provisioning_sample{kind} CASCADE"
            )
        ],
        state_operations=[
            migrations.CreateModel(
                name=name,
                fields=[
                    (
                        "pk",
                        models.CompositePrimaryKey(
                            "cluster_id",
                            "at",
                            blank=True,
                            editable=False,
                            primary_key=True,
                            serialize=False,
                        ),
                    ),
                    ("organization_id", models.CharField(max_length=32)),
                    ("cluster_id", models.CharField(max_length=32)),
                    ("at", models.DateTimeField()),
                    ("series", models.JSONField()),
                ],
            )
        ],
    )


def _permit() -> migrations.RunSQL:
    role = sql.Identifier(config().database.app_user).as_string(None)
    return migrations.RunSQL(
        [
            f"REVOKE ALL ON FUNCTION {ARGUMENTS} FROM PUBLIC",
            f"GRANT EXECUTE ON FUNCTION {ARGUMENTS} TO {role}",
            "SELECT provisioning_keep_sample_parts((now() AT TIME ZONE 'UTC')::date)",
        ],
        migrations.RunSQL.noop,
    )


class Migration(migrations.Migration):
    """New tables. Samples of the release before stay in the cell until its keeper moves them."""

    dependencies = [("provisioning", "0013_purging")]
    operations = [
        migrations.CreateModel(
            name="ClusterSample",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="sample",
                        serialize=False,
                        to="provisioning.cluster",
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("term", models.BigIntegerField()),
                ("taken_at_ms", models.BigIntegerField()),
                ("content", models.TextField()),
                ("minute_ms", models.BigIntegerField(default=0)),
                ("counted_at_ms", models.BigIntegerField(default=0)),
                ("counted", models.TextField(default="{}")),
            ],
        ),
        enable_rls("provisioning_clustersample"),
        migrations.CreateModel(
            name="SampleFile",
            fields=[
                (
                    "key",
                    models.CharField(max_length=128, primary_key=True, serialize=False),
                ),
                ("emitted_at_ms", models.BigIntegerField(db_index=True)),
                ("term", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("ingested", "Ingested"), ("damaged", "Damaged")], max_length=16
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("samples", models.PositiveIntegerField(default=0)),
                ("damaged", models.PositiveIntegerField(default=0)),
                ("ingested_at", models.DateTimeField(default=console.base.common.clock.now)),
            ],
        ),
        _over_time("minute", "SampleMinute"),
        _over_time("hour", "SampleHour"),
        enable_rls("provisioning_sampleminute"),
        enable_rls("provisioning_samplehour"),
        migrations.RunSQL("CREATE SCHEMA samples", "DROP SCHEMA samples"),
        migrations.RunSQL(PARTS, f"DROP FUNCTION {ARGUMENTS}"),
        _permit(),
    ]
