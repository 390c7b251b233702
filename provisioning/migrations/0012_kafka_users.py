"""Credentials of users that clients made over the Kafka protocol."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column with a default, so that the release before goes on."""

    dependencies = [("provisioning", "0011_break_glass")]
    operations = [
        migrations.AddField(
            model_name="credential",
            name="kafka_user",
            field=models.CharField(blank=True, db_default="", default="", max_length=255),
        ),
        migrations.AddConstraint(
            model_name="credential",
            constraint=models.UniqueConstraint(
                condition=~models.Q(kafka_user=""),
                fields=("cluster", "kafka_user"),
                name="one_credential_a_kafka_user",
            ),
        ),
    ]
