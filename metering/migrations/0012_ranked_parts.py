"""A rank of each part of a month, by which the dearest are found without reading all."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import F, FloatField, SmallIntegerField, Value
from django.db.models.functions import Cast, Floor, Greatest, Ln

COUNTED = (
    Value(0.0)
    + Cast(F("ingress_bytes"), FloatField()) * Value(3.7253e-5)
    + Cast(F("egress_bytes"), FloatField()) * Value(3.7253e-5)
    + Cast(F("storage_byte_minutes"), FloatField()) * Value(1.2935e-9)
    + Cast(F("partition_minutes"), FloatField()) * Value(8.3333)
)


class Migration(migrations.Migration):
    """PostgreSQL writes the table anew, with the column in it: seconds for a million parts."""

    dependencies = [("metering", "0011_hours_in_files")]
    operations = [
        migrations.AddField(
            model_name="monthpart",
            name="rank",
            field=models.GeneratedField(
                db_persist=True,
                expression=Cast(
                    Floor(
                        Ln(Value(1.0) + Greatest(COUNTED, Value(0.0))) * Value(46.16624130844683)
                    ),
                    SmallIntegerField(),
                ),
                output_field=models.SmallIntegerField(),
            ),
        ),
        migrations.AddIndex(
            model_name="monthpart",
            index=models.Index(
                fields=["organization_id", "cluster_id", "month", "kind", "-rank"],
                name="parts_by_rank",
            ),
        ),
        migrations.AddIndex(
            model_name="monthpart",
            index=models.Index(
                fields=["organization_id", "month", "kind", "-rank"], name="parts_of_all_by_rank"
            ),
        ),
    ]
