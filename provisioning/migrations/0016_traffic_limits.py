"""The traffic limit of a cluster's organization, in place of why produce is refused."""

from __future__ import annotations

from django.db import migrations, models

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

KINDS = [
    ("refuse", "Refuse produce and fetch"),
    ("refuse_produce", "Refuse produce"),
    ("throttle", "Slow produce and fetch down"),
]
FROM_REASONS = (
    f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
    """
    UPDATE provisioning_cluster SET traffic_kind = 'refuse_produce'
    WHERE produce_suspended_reason IS NOT NULL
    """,
    f"SELECT set_config('{SETTING}', '', true)",
)


class Migration(migrations.Migration):
    """Columns of clusters."""

    dependencies = [("provisioning", "0015_operation_started")]

    operations = [
        migrations.AlterField(
            "cluster",
            "produce_suspended_reason",
            models.CharField(
                blank=True, db_column="produce_suspended_reason", max_length=500, null=True
            ),
        ),
        migrations.RenameField("cluster", "produce_suspended_reason", "traffic_reason"),
        migrations.AddField(
            "cluster",
            "traffic_kind",
            models.CharField(blank=True, choices=KINDS, max_length=16, null=True),
        ),
        migrations.AddField(
            "cluster", "traffic_bytes_per_s", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.RunSQL(sql=FROM_REASONS, reverse_sql=migrations.RunSQL.noop),
    ]
