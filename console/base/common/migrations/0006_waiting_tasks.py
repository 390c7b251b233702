from __future__ import annotations

from functools import partial

from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """New tables: tasks that wait for their organization's turn."""

    dependencies = [("common", "0005_held_locks")]

    operations = [
        migrations.CreateModel(
            name="WaitingTask",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "wait"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("task", models.CharField(max_length=128)),
                ("arguments", models.JSONField(default=dict)),
                ("key", models.CharField(max_length=256, unique=True)),
                ("request_id", models.CharField(default="-", max_length=64)),
                (
                    "due_at",
                    models.DateTimeField(db_index=True, default=console.base.common.clock.now),
                ),
                ("taken_until", models.DateTimeField(blank=True, null=True)),
                ("taken_by", models.CharField(blank=True, max_length=64)),
                ("again", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["organization_id", "due_at"], name="waiting_of_one")
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskTurn",
            fields=[
                (
                    "organization_id",
                    models.CharField(max_length=32, primary_key=True, serialize=False),
                ),
                ("last_at", models.DateTimeField(db_index=True)),
            ],
        ),
        enable_rls("common_waitingtask"),
        enable_rls("common_taskturn"),
    ]
