"""Clusters that paying restores."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """One column."""

    dependencies = [("provisioning", "0017_readings")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="forfeited",
            field=models.BooleanField(default=False),
        ),
    ]
