"""Which changes by Kafka clients are in the audit log."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """One column, null for all clusters that there are: their first change is no gap."""

    dependencies = [("provisioning", "0018_forfeited_clusters")]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="changes_recorded",
            field=models.BigIntegerField(null=True, blank=True),
        ),
        migrations.AlterField(
            model_name="cluster",
            name="changes_recorded",
            field=models.BigIntegerField(null=True, blank=True, default=0),
        ),
    ]
