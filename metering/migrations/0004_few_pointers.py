"""Keeps statistics of a table that is small and decides how usage is read."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """By default a table is analysed once 50 of its rows changed: of this one after two months."""

    dependencies = [("metering", "0003_forget_lanes")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE metering_rolluppointer SET (autovacuum_analyze_threshold = 1)",
            "ALTER TABLE metering_rolluppointer RESET (autovacuum_analyze_threshold)",
        ),
    ]
