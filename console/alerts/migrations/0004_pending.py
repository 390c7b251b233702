"""Alerts that are pending, since when the figure is beyond the threshold, and whose it was."""

from __future__ import annotations

from django.db import migrations, models

from console.base.common.tenancy import EVERY_ORGANIZATION, SETTING

# Until now an alert was OK while its figure was beyond the threshold for a short time.
PENDING = """
UPDATE alerts_alert
SET state = 'pending', changed_at = back_since, beyond_since = back_since, back_since = NULL
WHERE state = 'ok' AND back_since IS NOT NULL
"""
# How long it had been pending before it fired was not kept.
FIRING = """
UPDATE alerts_alert SET beyond_since = changed_at, fired_subject = subject WHERE state = 'firing'
"""
NOT_PENDING = """
UPDATE alerts_alert SET state = 'ok', back_since = beyond_since WHERE state = 'pending'
"""


class Migration(migrations.Migration):
    """Columns, and their values for the alerts that there are."""

    dependencies = [("alerts", "0003_fired_at")]
    operations = [
        migrations.RenameField("alert", "contrary_since", "back_since"),
        migrations.AddField(
            model_name="alert",
            name="beyond_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="alert",
            name="fired_subject",
            field=models.CharField(blank=True, default="", max_length=255),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="alert",
            name="state",
            field=models.CharField(
                choices=[("ok", "OK"), ("pending", "Pending"), ("firing", "Firing")],
                default="ok",
                max_length=16,
            ),
        ),
        migrations.RunSQL(
            sql=[
                f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
                PENDING,
                FIRING,
                f"SELECT set_config('{SETTING}', '', true)",
            ],
            reverse_sql=[
                f"SELECT set_config('{SETTING}', '{EVERY_ORGANIZATION}', true)",
                NOT_PENDING,
                f"SELECT set_config('{SETTING}', '', true)",
            ],
        ),
    ]
