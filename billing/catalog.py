"""A catalogue of prices: what a unit of each meter costs and how much of it is free. Pure.

Meters count in whole base units: bytes, byte-minutes, partition-minutes. A price is for
a larger unit. The number of base units in a unit of time depends on the month:
1 GiB-month = 2^30 bytes × the minutes of that month.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from billing.choices import Meter, PriceUnit
from billing.money import CURRENCIES
from billing.periods import minutes_of

GIB = 2**30
MINUTES_AN_HOUR = 60

# The base unit that a meter counts in.
BASE_UNITS = {
    Meter.INGRESS.value: "byte",
    Meter.EGRESS.value: "byte",
    Meter.STORAGE.value: "byte_minute",
    Meter.PARTITIONS.value: "partition_minute",
}
# Meters that are shown and have no price.
SHOWN_ONLY = frozenset({"broker_seconds"})
# Meters of what moves. What the others count is kept, and costs while it is, also where nothing
# moves.
TRAFFIC = frozenset({Meter.INGRESS.value, Meter.EGRESS.value})


def unit_size(unit: str, month: date) -> int:
    """Base units in one unit of a price or an allowance, in a month."""
    match PriceUnit(unit):
        case PriceUnit.GIB:
            return GIB
        case PriceUnit.GIB_MONTH:
            return GIB * minutes_of(month)
        case PriceUnit.PARTITION_HOUR:
            return MINUTES_AN_HOUR
        case PriceUnit.PARTITION_MONTH:
            return minutes_of(month)


@dataclass(frozen=True, slots=True)
class MeterPrice:
    """The price of a meter, and the amount that is free for an organization each month."""

    meter: str
    # In major units of the catalogue's currency, for one `unit`.
    unit_price: Decimal
    unit: str
    # For one organization and month, in `free_unit`.
    free_units: int
    free_unit: str

    def free_quantity(self, month: date) -> int:
        """The free allowance of an organization in a month, in base units."""
        return self.free_units * unit_size(self.free_unit, month)


@dataclass(frozen=True, slots=True)
class Catalog:
    """One version of the prices."""

    version: str
    currency: str
    prices: Mapping[str, MeterPrice]

    def faults(self) -> list[str]:
        """Why no invoice could be made by these prices, in words; empty where one can."""
        faults = []
        if self.currency not in CURRENCIES:
            known = ", ".join(sorted(CURRENCIES))
            faults.append(f"its currency is {self.currency!r}, and known ones are {known}")
        missing = [meter for meter in Meter.values if meter not in self.prices]
        if missing:
            faults.append(f"it has no price for {', '.join(missing)}")
        return faults
