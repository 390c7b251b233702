"""Prices, in versions. A version never changes: a new price is a new version."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from billing.catalog import Catalog, MeterPrice
from billing.choices import Meter, PriceUnit
from billing.money import PRICE_DIGITS, PRICE_PLACES
from billing.querysets import PriceVersionQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class PriceVersion(models.Model):
    """The prices of all months from `valid_from` on, until a later version begins. The same for all
    organizations."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "prv"), editable=False
    )
    # The first day of a month.
    valid_from = models.DateField(unique=True)
    currency = models.CharField(max_length=3)
    created_at = models.DateTimeField(default=now)

    objects = PriceVersionQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(valid_from__day=1), name="prices_change_with_the_month"
            ),
        )

    def __str__(self) -> str:
        return f"prices from {self.valid_from}"

    def catalog(self) -> Catalog:
        """The version as data for rating: one query, or none if `prices` was prefetched."""
        prices = {price.meter: price.meter_price() for price in self.prices.all()}
        # In the order in which invoices show them: data in, data out, storage, partitions.
        ordered = {meter: prices[meter] for meter in Meter.values if meter in prices}
        return Catalog(version=self.pk, currency=self.currency, prices=ordered)


class Price(models.Model):
    """What one meter costs in a version."""

    version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="prices")
    meter = models.CharField(max_length=32, choices=Meter.choices)
    # In major units of the version's currency, for one `unit`.
    unit_price = models.DecimalField(max_digits=PRICE_DIGITS, decimal_places=PRICE_PLACES)
    unit = models.CharField(max_length=16, choices=PriceUnit.choices)
    # Free of charge for an organization in a month, in `free_unit`.
    free_units = models.PositiveBigIntegerField()
    free_unit = models.CharField(max_length=16, choices=PriceUnit.choices)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["version", "meter"], name="one_price_a_meter"),
            models.CheckConstraint(condition=Q(unit_price__gte=0), name="prices_are_not_negative"),
        )

    def __str__(self) -> str:
        return f"{self.meter}: {self.unit_price} a {self.unit}"

    def meter_price(self) -> MeterPrice:
        """The row as data for rating."""
        return MeterPrice(
            meter=self.meter,
            unit_price=self.unit_price,
            unit=self.unit,
            free_units=self.free_units,
            free_unit=self.free_unit,
        )
