"""The list of prices in the database: the first catalogue, its validity, its guards."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management.sql import emit_post_migrate_signal
from django.db import connections, transaction
from django.db.utils import ProgrammingError

from billing import receivers
from billing.models import PriceVersion


def run(statement, alias="default"):
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.django_db
def test_the_first_catalogue_is_there():
    catalog = PriceVersion.objects.in_force(date(2026, 11, 1)).catalog()
    shown = {
        meter: (price.unit_price, price.unit, price.free_units, price.free_unit)
        for meter, price in catalog.prices.items()
    }
    assert catalog.currency == "USD"
    assert shown == {
        "ingress_bytes": (Decimal("0.04"), "GiB", 10, "GiB"),
        "egress_bytes": (Decimal("0.04"), "GiB", 10, "GiB"),
        "storage_byte_minutes": (Decimal("0.06"), "GiB-month", 5, "GiB-month"),
        "partition_minutes": (Decimal("0.0005"), "partition-hour", 1000, "partition-month"),
    }


@pytest.mark.django_db(databases=["default", "owner"])
def test_a_later_version_prices_the_months_from_its_own_on():
    later = PriceVersion.objects.using("owner").create(valid_from=date(2027, 1, 1), currency="USD")
    versions = PriceVersion.objects.using("owner")
    assert versions.in_force(date(2026, 12, 1)) != later
    assert versions.in_force(date(2027, 1, 1)) == later
    assert versions.in_force(date(2030, 6, 1)) == later


@pytest.mark.django_db(databases=["default", "owner"])
def test_a_migration_that_leaves_unusable_prices_fails():
    receivers.check_prices(using="owner")
    odd = PriceVersion.objects.using("owner").create(valid_from=date(2027, 1, 1), currency="XYZ")
    with pytest.raises(ImproperlyConfigured) as raised:
        receivers.check_prices(using="owner")
    for part in (odd.pk, "'XYZ'", "EUR, JPY, USD", "no price for ingress_bytes, egress_bytes"):
        assert part in str(raised.value)


@pytest.mark.django_db(databases=["owner"])
def test_every_migration_ends_with_the_check():
    PriceVersion.objects.using("owner").create(valid_from=date(2027, 1, 1), currency="XYZ")
    with pytest.raises(ImproperlyConfigured):
        emit_post_migrate_signal(verbosity=0, interactive=False, db="owner")


@pytest.mark.parametrize("alias", ["default", "owner"])
@pytest.mark.parametrize("table", ["billing_price", "billing_priceversion"])
@pytest.mark.django_db(databases=["default", "owner"])
def test_prices_never_change(alias, table):
    with pytest.raises(ProgrammingError, match=r"never change|permission denied"):
        run(f"UPDATE {table} SET id = id", alias)  # noqa: S608
    with pytest.raises(ProgrammingError, match=r"never change|permission denied"):
        run(f"DELETE FROM {table}", alias)  # noqa: S608


@pytest.mark.django_db
def test_the_serving_role_makes_no_prices():
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        PriceVersion.objects.create(valid_from=date(2027, 1, 1), currency="USD")
