"""Where the hours of a roll-up are."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that says of runs from before that their hours are rows; no row is written."""

    dependencies = [("metering", "0010_joined_files")]
    operations = [
        migrations.AddField(
            model_name="rolluprun",
            name="hours_in",
            field=models.CharField(
                choices=[("table", "Table"), ("files", "Files")],
                db_default="table",
                default="files",
                max_length=8,
            ),
        ),
    ]
