"""Running totals, filled from the rows that there are; pointers say whether a run was early."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

import console.base.common.clock
from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING, enable_rls

METERS = ("ingress_bytes", "egress_bytes", "storage_byte_minutes", "partition_minutes")
METER_CHOICES = [
    ("ingress_bytes", "Ingress"),
    ("egress_bytes", "Egress"),
    ("storage_byte_minutes", "Storage"),
    ("partition_minutes", "Partitions"),
    ("broker_seconds", "Brokers"),
]
KINDS = [("topic", "Topic"), ("principal", "Principal")]
# A row of a total is updated once a minute, and none of its updated columns is in an index: with
# room in its page the update touches no index.
ROOM = "ALTER TABLE {table} SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)"
TABLES = (
    "metering_runningmonth",
    "metering_runningday",
    "metering_runninghour",
    "metering_monthpart",
    "metering_provisionalpart",
)
# Not yet rolled up, or rolled up before it was over: a day then counts from its minutes. Which runs
# of earlier releases were early follows from when they began.
FILL: list[Any] = [
    f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
    """UPDATE metering_rolluppointer AS pointer SET early = true FROM metering_rolluprun AS run
    WHERE run.id = pointer.run_id
        AND run.created_at < (pointer.day + 1)::timestamp AT TIME ZONE 'UTC'""",
    """CREATE TEMPORARY TABLE counted ON COMMIT DROP AS
    SELECT organization_id, cluster_id, topic_id, principal, meter,
        pointer.day, false AS provisional, sum(quantity) AS quantity
    FROM metering_rolluppointer AS pointer JOIN metering_usagerow USING (run_id)
    WHERE NOT pointer.early AND granularity = 'day' AND billed
    GROUP BY organization_id, cluster_id, topic_id, principal, meter, pointer.day
    UNION ALL
    SELECT organization_id, cluster_id, topic_id, principal, meter,
        (minute AT TIME ZONE 'UTC')::date, true, sum(quantity)
    FROM metering_provisionalminute
    WHERE billed AND (minute AT TIME ZONE 'UTC')::date NOT IN (
        SELECT day FROM metering_rolluppointer WHERE NOT early
    )
    GROUP BY organization_id, cluster_id, topic_id, principal, meter, 6""",
    """INSERT INTO metering_runningday (organization_id, cluster_id, day, meter, quantity)
    SELECT organization_id, cluster_id, day, meter, sum(quantity)
    FROM counted GROUP BY organization_id, cluster_id, day, meter""",
    """INSERT INTO metering_runningmonth (organization_id, cluster_id, month, meter, quantity)
    SELECT organization_id, cluster_id, date_trunc('month', day)::date, meter, sum(quantity)
    FROM counted GROUP BY organization_id, cluster_id, 3, meter""",
    """INSERT INTO metering_runninghour (organization_id, cluster_id, hour, meter, quantity,
        first_minute, last_minute)
    SELECT organization_id, cluster_id, date_trunc('hour', minute, 'UTC'), meter,
        sum(quantity), min(minute), max(minute)
    FROM metering_provisionalminute
    WHERE billed AND meter IN ('storage_byte_minutes', 'partition_minutes')
    GROUP BY organization_id, cluster_id, 3, meter""",
    *(
        f"""INSERT INTO {table} (organization_id, cluster_id, {column}, kind, name,
        {", ".join(METERS)})
    SELECT organization_id, cluster_id, {period}, kind, name,
        {", ".join(f"coalesce(sum(quantity) FILTER (WHERE meter = '{m}'), 0)" for m in METERS)}
    FROM counted, LATERAL (VALUES ('topic', topic_id), ('principal', principal))
        AS place (kind, name)
    WHERE meter IN ({", ".join(f"'{meter}'" for meter in METERS)}) AND (provisional OR {every})
    GROUP BY organization_id, cluster_id, 3, kind, name"""  # noqa: S608 (constants of this module)
        for table, column, period, every in (
            ("metering_monthpart", "month", "date_trunc('month', day)::date", "true"),
            ("metering_provisionalpart", "day", "day", "false"),
        )
    ),
    "DROP TABLE counted",
]


def quantity() -> models.DecimalField[Any, Any]:
    return models.DecimalField(decimal_places=0, default=0, max_digits=38)


def part_fields() -> list[tuple[str, Any]]:
    return [
        ("organization_id", models.CharField(max_length=32)),
        ("cluster_id", models.CharField(max_length=32)),
        ("kind", models.CharField(choices=KINDS, max_length=16)),
        ("name", models.TextField(blank=True)),
        *((meter, quantity()) for meter in METERS),
    ]


def sum_fields() -> list[tuple[str, Any]]:
    return [
        ("organization_id", models.CharField(max_length=32)),
        ("cluster_id", models.CharField(max_length=32)),
        ("meter", models.CharField(choices=METER_CHOICES, max_length=32)),
        ("quantity", quantity()),
    ]


def composite(*names: str) -> tuple[str, Any]:
    key = models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )
    return ("pk", key)


class Migration(migrations.Migration):
    """Five tables of tenants, one of the service, and a column."""

    dependencies = [("metering", "0006_judged_hours")]
    # Which forbids that a pointer becomes an early one.
    run_before = [("billing", "0009_guards_of_money")]

    operations = [
        migrations.AddField(
            model_name="rolluppointer",
            name="early",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="RunningMonth",
            fields=[
                composite("organization_id", "cluster_id", "month", "meter"),
                *sum_fields(),
                ("month", models.DateField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["month", "organization_id"], name="running_months")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunningDay",
            fields=[
                composite("organization_id", "cluster_id", "day", "meter"),
                *sum_fields(),
                ("day", models.DateField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["organization_id", "day"], name="running_days_of_one"),
                    models.Index(fields=["day"], name="running_days"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RunningHour",
            fields=[
                composite("organization_id", "cluster_id", "hour", "meter"),
                *sum_fields(),
                ("hour", models.DateTimeField()),
                ("first_minute", models.DateTimeField()),
                ("last_minute", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["organization_id", "hour"], name="running_hours_of_one"),
                    models.Index(fields=["hour"], name="running_hours"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthPart",
            fields=[
                composite("organization_id", "cluster_id", "month", "kind", "name"),
                *part_fields(),
                ("month", models.DateField()),
            ],
            options={"abstract": False},
        ),
        migrations.CreateModel(
            name="ProvisionalPart",
            fields=[
                composite("organization_id", "cluster_id", "day", "kind", "name"),
                *part_fields(),
                ("day", models.DateField()),
            ],
            options={
                "indexes": [models.Index(fields=["day"], name="provisional_parts")],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="TotalsCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cell", models.CharField(max_length=32)),
                ("checked_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("differing", models.PositiveBigIntegerField()),
                ("differences", models.JSONField(default=list)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["cell", "-checked_at"], name="totals_checks_newest")
                ],
            },
        ),
        *(enable_rls(table) for table in TABLES),
        migrations.RunSQL(
            "; ".join(ROOM.format(table=table) for table in TABLES), migrations.RunSQL.noop
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
