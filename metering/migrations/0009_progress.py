"""How far a running job is."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Two columns, which are empty for jobs of the release before."""

    dependencies = [("metering", "0008_minutes_by_day")]
    operations = [
        migrations.AddField(
            model_name="rolluprun", name="progress", field=models.JSONField(default=dict)
        ),
        migrations.AddField(
            model_name="reconciliation", name="progress", field=models.JSONField(default=dict)
        ),
    ]
