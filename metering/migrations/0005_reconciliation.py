"""Comparisons of usage with the log: for staff as a whole, for tenants by cluster and day."""

from __future__ import annotations

import functools

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls

FINAL = """
CREATE TRIGGER metering_reconciliation_final BEFORE UPDATE OR DELETE ON metering_reconciliation
    FOR EACH ROW WHEN (OLD.state <> 'running') EXECUTE FUNCTION metering_refuse_change();
"""


class Migration(migrations.Migration):
    """Two tables, of which the second is of tenants."""

    dependencies = [
        ("metering", "0004_few_pointers"),
    ]

    operations = [
        migrations.AlterField(
            model_name="qualityresult",
            name="kind",
            field=models.CharField(
                choices=[
                    ("check", "Check"),
                    ("conflict", "Conflict"),
                    ("damaged_input", "Damaged input"),
                    ("incomplete_hour", "Incomplete hour"),
                    ("reconciliation", "Reconciliation"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="rolluprun",
            name="state",
            field=models.CharField(
                choices=[
                    ("running", "Running"),
                    ("published", "Published"),
                    ("unchanged", "Unchanged"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("interrupted", "Interrupted"),
                ],
                default="running",
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="Reconciliation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("rec",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("cell", models.CharField(max_length=32)),
                ("day", models.DateField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("published", "Published"),
                            ("unchanged", "Unchanged"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="running",
                        max_length=16,
                    ),
                ),
                ("inputs_sha256", models.CharField(max_length=64)),
                ("report", models.JSONField(default=dict)),
                ("passed", models.BooleanField(blank=True, null=True)),
                ("failed_checks", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["cell", "-day", "-created_at"], name="reconciliations_newest"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReconciledDay",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=functools.partial(console.base.common.ids.new_id, *("rcd",)),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("cluster_id", models.CharField(max_length=32)),
                ("day", models.DateField()),
                (
                    "agreement",
                    models.CharField(
                        choices=[
                            ("equal", "Equal"),
                            ("different", "Different"),
                            ("partly_known", "Partly known"),
                        ],
                        max_length=16,
                    ),
                ),
                ("metered_bytes", models.DecimalField(decimal_places=0, max_digits=38)),
                ("logged_bytes", models.DecimalField(decimal_places=0, max_digits=38)),
                ("unknown_bytes", models.DecimalField(decimal_places=0, max_digits=38)),
                ("differing", models.BigIntegerField()),
                ("reason", models.TextField(blank=True)),
                ("compared_at", models.DateTimeField(default=console.base.common.clock.now)),
                (
                    "reconciliation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="metering.reconciliation"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["organization_id", "-day", "-id"], name="reconciled_newest"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster_id", "day"), name="one_comparison_a_day"
                    )
                ],
            },
        ),
        enable_rls("metering_reconciledday"),
        migrations.RunSQL(
            FINAL, "DROP TRIGGER metering_reconciliation_final ON metering_reconciliation"
        ),
    ]
