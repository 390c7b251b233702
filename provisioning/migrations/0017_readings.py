"""Who reads records of which topic at this moment."""

from __future__ import annotations

from functools import partial

from django.db import migrations, models

import console.base.common.clock
import console.base.common.ids
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """A table of its own; each row is one organization's."""

    dependencies = [("provisioning", "0016_traffic_limits")]
    operations = [
        migrations.CreateModel(
            name="RecordReading",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=partial(console.base.common.ids.new_id, "rdg"),
                        editable=False,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("cluster_id", models.CharField(max_length=32)),
                ("topic", models.CharField(max_length=249)),
                ("actor_kind", models.CharField(max_length=16)),
                ("actor_id", models.CharField(max_length=255)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("request_id", models.CharField(max_length=64)),
                ("began_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("last_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("pages", models.BigIntegerField(default=0)),
                ("live_tails", models.BigIntegerField(default=0)),
                ("records", models.BigIntegerField(default=0)),
                ("records_read", models.BigIntegerField(default=0)),
                ("ranges", models.JSONField(default=list)),
                ("joined", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization_id", "cluster_id", "topic", "actor_kind", "actor_id"),
                        name="one_reading_an_actor",
                    )
                ],
            },
        ),
        enable_rls("provisioning_recordreading"),
    ]
