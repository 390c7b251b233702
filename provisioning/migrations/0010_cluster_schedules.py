"""Times of the week at which a cluster shall be awake."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """What is wanted, what the cell was told, and when that changes."""

    dependencies = [("provisioning", "0009_announcement")]
    operations = [
        migrations.AddField(
            model_name="cluster", name="schedules", field=models.JSONField(default=list)
        ),
        migrations.AddField(
            model_name="cluster",
            name="schedule_awake",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="cluster",
            name="schedule_due_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="cluster",
            index=models.Index(
                fields=["schedule_due_at"],
                condition=Q(schedule_due_at__isnull=False),
                name="clusters_by_schedule",
            ),
        ),
    ]
