"""When an alert last began to fire."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column. Of what fired before it is not known."""

    dependencies = [("alerts", "0002_row_security")]
    operations = [
        migrations.AddField(
            model_name="alert",
            name="fired_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
