from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """When an operation had its turn; of earlier ones nobody knows, and they count as before."""

    dependencies = [("provisioning", "0014_samples")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="started_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
