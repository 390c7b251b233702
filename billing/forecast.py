"""Forecasts of a month's quantities, and exact shares of amounts. Pure.

Amounts are minor units, quantities base units of their meters, times milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from billing.choices import Meter

Key = TypeVar("Key", bound=Hashable)

# Meters that grow with time while nobody uses anything.
ACCRUING = frozenset({Meter.STORAGE.value, Meter.PARTITIONS.value})
MINUTE_MS = 60_000
# A rate is taken over this time at least: one minute of traffic says nothing about a month.
BASIS_MIN_MS = 60 * MINUTE_MS


def forecast_totals(
    totals: Mapping[tuple[str, str], int],
    rates: Mapping[tuple[str, str], int],
    *,
    since_ms: int,
    until_ms: int,
    end_ms: int,
) -> dict[tuple[str, str], int]:
    """(cluster, meter) → quantity at the month's end, if usage goes on as it does now.

    `totals` is what was used in [since, until). Traffic goes on at its average rate in
    that time; storage and partitions go on at their present `rates`, in base units a minute.
    """
    left_ms = max(0, end_ms - until_ms)
    basis_ms = max(until_ms - since_ms, BASIS_MIN_MS)
    forecast = {}
    for key in totals.keys() | rates.keys():
        quantity = totals.get(key, 0)
        _, meter = key
        if meter in ACCRUING:
            forecast[key] = quantity + rates.get(key, 0) * left_ms // MINUTE_MS
        else:
            forecast[key] = quantity + quantity * left_ms // basis_ms
    return forecast


def allocate_amount(amount_minor: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Splits an amount by weight into whole shares with exactly its sum (largest remainder method).

    At equal remainders the greater weight comes first, then the key. Without any weight there is
    nobody to give the amount to, and the result is empty.
    """
    total = sum(weights.values())
    if not total:
        return {}
    shares, remainders = {}, {}
    for key, weight in weights.items():
        shares[key], remainders[key] = divmod(amount_minor * weight, total)
    rest = amount_minor - sum(shares.values())
    if not rest:
        return shares

    # Sorting the remainders alone is quick. Weight and key decide only at the last one's equals.
    last = sorted(remainders.values(), reverse=True)[rest - 1]
    above = [key for key, remainder in remainders.items() if remainder > last]
    equal = [key for key, remainder in remainders.items() if remainder == last]
    if len(above) + len(equal) > rest:
        equal.sort(key=lambda key: (-weights[key], str(key)))
    for key in (*above, *equal[: rest - len(above)]):
        shares[key] += 1
    return shares
