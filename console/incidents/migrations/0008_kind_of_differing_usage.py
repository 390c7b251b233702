"""Usage that does not reconcile."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """One more kind."""

    dependencies = [("incidents", "0007_kind_of_differing_money")]
    operations = [
        migrations.AlterField(
            model_name="incident",
            name="kind",
            field=models.CharField(
                choices=[
                    ("brokers_crashing", "Brokers crash again and again"),
                    ("cell_unreachable", "A cell does not answer"),
                    ("brokers_unhealthy", "Too many brokers are unhealthy"),
                    ("keeper_silent", "A cell's keeper says nothing"),
                    ("machine_lost", "A machine that brokers ran on is lost"),
                    ("platform_unreachable", "What runs brokers cannot be asked"),
                    ("metadata_full", "A cell's metadata store is nearly full"),
                    ("damaged_batch", "A topic has a batch that cannot be decoded"),
                    ("operation_stuck", "An operation does not end"),
                    ("tasks_delayed", "Background work does not run"),
                    ("usage_incomplete", "Usage of an hour is missing"),
                    ("invoices_missing", "Invoices of a month could not be issued"),
                    ("money_differs", "Money does not reconcile"),
                    ("usage_differs", "Usage does not reconcile"),
                ],
                max_length=32,
            ),
        ),
    ]
