"""An intent for clusters whose data is being removed."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Only Python knows the choices: no table changes."""

    dependencies = [("provisioning", "0012_kafka_users")]
    operations = [
        migrations.AlterField(
            model_name="cluster",
            name="intent",
            field=models.CharField(
                choices=[
                    ("active", "Active"),
                    ("deleted", "Deleted"),
                    ("purging", "Purging"),
                    ("purged", "Purged"),
                ],
                default="active",
                max_length=16,
            ),
        ),
    ]
