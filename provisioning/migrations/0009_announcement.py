"""Changes of a cell that are about to be made."""

from __future__ import annotations

from django.db import migrations, models

import console.base.common.clock
from console.base.common.tenancy import enable_rls


class Migration(migrations.Migration):
    """A table of its own, for who looks after requests that died."""

    dependencies = [("provisioning", "0008_operation_request_id")]
    operations = [
        migrations.CreateModel(
            name="Announcement",
            fields=[
                (
                    "id",
                    models.CharField(
                        editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("organization_id", models.CharField(max_length=32)),
                ("cluster_id", models.CharField(max_length=32)),
                ("created_at", models.DateTimeField(default=console.base.common.clock.now)),
                ("entry", models.JSONField()),
            ],
        ),
        enable_rls("provisioning_announcement"),
    ]
