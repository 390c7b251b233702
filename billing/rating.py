"""Rating: quantities and prices in, lines of an invoice out.

Pure: no clock, no database, no floating point. One rounding, half up, for each meter and price: the
lines share the rounded sum, so that many small lines cost what one large line does. What is free of
a meter is an organization's, for a month: its clusters use it up in the order of their ids, so that
the billable quantities of a meter sum to exactly max(0, total quantity − free quantity), whatever
the number of clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from billing.catalog import SHOWN_ONLY, TRAFFIC, Catalog, MeterPrice, unit_size
from billing.money import (
    CURRENCIES,
    PRICE_PLACES,
    allocate_amount,
    round_half_up,
    scaled_price,
)

# (cluster id, meter) → quantity in base units.
Totals = Mapping[tuple[str, str], int]


class UnpricedMeter(Exception):
    """A quantity to bill has no price in the catalogue. It must not be billed as free."""


@dataclass(frozen=True, slots=True)
class RatedLine:
    """What one meter of one cluster costs in a month."""

    cluster_id: str
    meter: str
    # In base units: bytes, byte-minutes, partition-minutes.
    quantity: int
    # The part of `quantity` that the free allowance covers.
    free_quantity: int
    unit_price: Decimal
    # The unit that the price is for, and the number of base units in it.
    unit: str
    unit_size: int
    amount_minor: int

    @property
    def billable_quantity(self) -> int:
        """The part that is paid for, in base units."""
        return self.quantity - self.free_quantity


@dataclass(frozen=True, slots=True)
class Spent:
    """What a month costs, before taxes, in minor units of the catalogue's currency."""

    # Ingress and egress, which a budget can stop.
    traffic_minor: int = 0
    # Storage and partitions, which cost as long as they are kept.
    kept_minor: int = 0

    @property
    def total_minor(self) -> int:
        """All of it."""
        return self.traffic_minor + self.kept_minor


def spent_on(lines: Iterable[RatedLine]) -> Spent:
    """The amounts of lines, apart for what moves and what is kept."""
    traffic_minor = kept_minor = 0
    for line in lines:
        if line.meter in TRAFFIC:
            traffic_minor += line.amount_minor
        else:
            kept_minor += line.amount_minor
    return Spent(traffic_minor=traffic_minor, kept_minor=kept_minor)


def rate_totals(
    totals: Totals, catalog: Catalog, month: date, free: Mapping[str, int] | None = None
) -> list[RatedLine]:
    """Lines of one organization's month, in the order of the catalogue's meters, then clusters.

    `free`: meter → the quantity that is free, in base units, where it is not the catalogue's
    allowance; a meter that it does not name has none. Quantities of zero give no line. Raises
    `UnpricedMeter` for a meter without a price, and `ValueError` for a quantity below zero.
    """
    unknown = {meter for _, meter in totals} - set(catalog.prices) - SHOWN_ONLY
    if unknown:
        raise UnpricedMeter(sorted(unknown)[0])
    if any(quantity < 0 for quantity in totals.values()):
        message = "a quantity is below zero"
        raise ValueError(message)
    lines = []
    for meter, price in catalog.prices.items():
        quantities = {cluster: n for (cluster, of), n in totals.items() if of == meter and n}
        free_quantity = price.free_quantity(month) if free is None else free.get(meter, 0)
        lines += _meter_lines(quantities, price, catalog.currency, month, free_quantity)
    return lines


def exact_amount(billable_quantity: int, price: MeterPrice, currency: str, month: date) -> Fraction:
    """What a quantity costs, in minor units, before it is rounded."""
    minor = CURRENCIES[currency].minor_units
    scaled = scaled_price(price.unit_price) * minor
    return Fraction(billable_quantity * scaled, unit_size(price.unit, month) * 10**PRICE_PLACES)


def _meter_lines(
    quantities: Mapping[str, int], price: MeterPrice, currency: str, month: date, free_quantity: int
) -> list[RatedLine]:
    free_left = free_quantity
    free = {}
    for cluster_id, quantity in sorted(quantities.items()):
        free[cluster_id] = min(quantity, free_left)
        free_left -= free[cluster_id]
    billable = {cluster_id: quantities[cluster_id] - part for cluster_id, part in free.items()}
    exact = exact_amount(sum(billable.values()), price, currency, month)
    amounts = allocate_amount(round_half_up(exact.numerator, exact.denominator), billable)
    size = unit_size(price.unit, month)
    return [
        RatedLine(
            cluster_id=cluster_id,
            meter=price.meter,
            quantity=quantities[cluster_id],
            free_quantity=part,
            unit_price=price.unit_price,
            unit=price.unit,
            unit_size=size,
            # Where nothing is to be paid there is nobody to share it.
            amount_minor=amounts.get(cluster_id, 0),
        )
        for cluster_id, part in free.items()
    ]
