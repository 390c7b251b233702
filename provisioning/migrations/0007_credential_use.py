"""When credentials were last used."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column that metering fills."""

    dependencies = [("provisioning", "0006_cluster_project")]
    operations = [
        migrations.AddField(
            model_name="credential",
            name="last_used_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
