"""Usage files that are joined: which file counts in the place of which."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

NOT_JOINED = models.Q(joined=0, replaced_by__isnull=True, state="ingested")


class Migration(migrations.Migration):
    """Columns with defaults that PostgreSQL keeps in its catalog: no row is written."""

    dependencies = [("metering", "0009_progress")]
    operations = [
        migrations.AddField(
            model_name="usagefile",
            name="joined",
            field=models.IntegerField(default=0, db_default=0),
        ),
        migrations.AddField(
            model_name="usagefile",
            name="replaced_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="replaces",
                to="metering.usagefile",
            ),
        ),
        migrations.AddField(
            model_name="usagefile",
            name="removed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="usagefile",
            index=models.Index(
                condition=NOT_JOINED, fields=["cell", "day"], name="usage_files_not_joined"
            ),
        ),
    ]
