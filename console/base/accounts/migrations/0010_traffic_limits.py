"""Limits of traffic by source; the one that holds is on the organization."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING, enable_rls

KINDS = [
    ("refuse", "Refuse produce and fetch"),
    ("refuse_produce", "Refuse produce"),
    ("throttle", "Slow produce and fetch down"),
]
SOURCES = [
    ("unpaid", "An invoice is unpaid"),
    ("allowance", "The free allowance is used up"),
    ("budget", "A budget is used up"),
]
# Until now a reason meant that a budget had produce refused. It stays so: those budgets were set
# under the promise that fetch goes on.
FROM_REASONS = (
    f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
    """
    INSERT INTO accounts_trafficlimit (organization_id, source, kind, reason, created_at)
    SELECT id, 'budget', 'refuse_produce', produce_suspended_reason, now()
    FROM accounts_organization WHERE produce_suspended_reason IS NOT NULL
    """,
    """
    UPDATE accounts_organization SET traffic_kind = 'refuse_produce'
    WHERE produce_suspended_reason IS NOT NULL
    """,
    f"SELECT set_config('{SETTING}', '', true)",
)


class Migration(migrations.Migration):
    """A table of tenants, and columns of organizations."""

    dependencies = [("accounts", "0009_account_status")]

    operations = [
        migrations.AlterField(
            "organization",
            "produce_suspended_reason",
            models.CharField(
                blank=True, db_column="produce_suspended_reason", max_length=500, null=True
            ),
        ),
        migrations.RenameField("organization", "produce_suspended_reason", "traffic_reason"),
        migrations.AddField(
            "organization",
            "traffic_kind",
            models.CharField(blank=True, choices=KINDS, max_length=16, null=True),
        ),
        migrations.AddField(
            "organization", "traffic_bytes_per_s", models.BigIntegerField(blank=True, null=True)
        ),
        migrations.CreateModel(
            name="TrafficLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(choices=SOURCES, max_length=16)),
                ("kind", models.CharField(choices=KINDS, max_length=16)),
                ("reason", models.CharField(max_length=500)),
                ("bytes_per_s", models.BigIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="traffic_limits",
                        to="accounts.organization",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "source"), name="one_traffic_limit_a_source"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("bytes_per_s__gt", 0), ("kind", "throttle"))
                        | (
                            ~models.Q(("kind", "throttle"))
                            & models.Q(("bytes_per_s__isnull", True))
                        ),
                        name="only_throttles_have_a_rate",
                    ),
                ],
            },
        ),
        enable_rls("accounts_trafficlimit"),
        migrations.RunSQL(sql=FROM_REASONS, reverse_sql=migrations.RunSQL.noop),
    ]
