"""The first list of prices. Prices come by migrations alone, and never change afterwards."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from billing.guards import refuse_changes, refusing_function

VERSION = "prv_firstcatalogueaaaaaa"
# Meter, price in dollars, of what, how much of it is free each month, of what.
PRICES = [
    ("ingress_bytes", "0.04", "GiB", 10, "GiB"),
    ("egress_bytes", "0.04", "GiB", 10, "GiB"),
    ("storage_byte_minutes", "0.06", "GiB-month", 5, "GiB-month"),
    ("partition_minutes", "0.0005", "partition-hour", 1000, "partition-month"),
]


def add(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    alias = editor.connection.alias
    version = apps.get_model("billing", "PriceVersion").objects.using(alias)
    version.create(id=VERSION, valid_from=date(2020, 1, 1), currency="USD")
    price = apps.get_model("billing", "Price").objects.using(alias)
    for meter, unit_price, unit, free_units, free_unit in PRICES:
        price.create(
            version_id=VERSION,
            meter=meter,
            unit_price=Decimal(unit_price),
            unit=unit,
            free_units=free_units,
            free_unit=free_unit,
        )


def remove(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    alias = editor.connection.alias
    apps.get_model("billing", "Price").objects.using(alias).filter(version_id=VERSION).delete()
    apps.get_model("billing", "PriceVersion").objects.using(alias).filter(id=VERSION).delete()


class Migration(migrations.Migration):
    """The first catalogue, and its guards."""

    dependencies = [("billing", "0001_initial")]
    operations = [
        refusing_function(),
        migrations.RunPython(add, remove),
        refuse_changes("billing_priceversion", rights="INSERT, UPDATE, DELETE"),
        refuse_changes("billing_price", rights="INSERT, UPDATE, DELETE"),
    ]
