"""Permits to delete something although deletions are held."""

from __future__ import annotations

from functools import partial

import django.db.models.deletion
from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """A table of its own; each row is one organization's."""

    dependencies = [
        ("accounts", "0007_default_projects"),
        ("provisioning", "0010_cluster_schedules"),
    ]
    operations = [
        migrations.CreateModel(
            name="BreakGlass",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "bgl"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("reason", models.CharField(max_length=1000)),
                ("made_by", models.CharField(max_length=32)),
                ("audit_id", models.CharField(max_length=32)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="break_glasses",
                        to="provisioning.cluster",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.organization",
                    ),
                ),
            ],
        ),
        enable_rls("provisioning_breakglass"),
    ]
