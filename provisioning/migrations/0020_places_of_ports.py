"""A cluster's ports have places, because the first of several is no slot's."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """The name of a field; its column stays."""

    dependencies = [("provisioning", "0019_changes_recorded")]

    operations = [
        migrations.RemoveConstraint("cellport", "one_port_a_slot"),
        migrations.AlterField(
            "cellport", "slot", models.PositiveSmallIntegerField(db_column="slot")
        ),
        migrations.RenameField("cellport", "slot", "place"),
        migrations.AddConstraint(
            "cellport",
            models.UniqueConstraint(fields=["cluster_id", "place"], name="one_port_a_place"),
        ),
    ]
