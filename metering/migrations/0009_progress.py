"""How far a running job is."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

# Processes of the release before go on adding rows.
PROGRESS: models.JSONField[Any, Any] = models.JSONField(
    default=dict, db_default=models.Value({}, models.JSONField())
)


class Migration(migrations.Migration):
    """Two columns, which are empty for jobs of the release before."""

    dependencies = [("metering", "0008_minutes_by_day")]
    operations = [
        migrations.AddField(model_name="rolluprun", name="progress", field=PROGRESS),
        migrations.AddField(model_name="reconciliation", name="progress", field=PROGRESS.clone()),
    ]
