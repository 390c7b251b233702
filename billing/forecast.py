"""What a month will have cost, and whose share of it is what. Pure.

Amounts are minor units, quantities base units of their meters, times milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from billing.choices import Meter

Key = TypeVar("Key", bound=Hashable)

# What goes on by itself: these do not grow by use, but with time.
ACCRUING = frozenset({Meter.STORAGE.value, Meter.PARTITIONS.value})
MINUTE_MS = 60_000
# From less than this no flow is extrapolated: a minute says nothing of a month.
BASIS_MIN_MS = 60 * MINUTE_MS


def forecast_totals(
    totals: Mapping[tuple[str, str], int],
    rates: Mapping[tuple[str, str], int],
    *,
    since_ms: int,
    until_ms: int,
    end_ms: int,
) -> dict[tuple[str, str], int]:
    """(cluster, meter) → quantity at the month's end, if it goes on as it does.

    `totals` is what was used in [since, until). What flows goes on as fast as on the average of
    that time; what stands goes on at the present `rates`, in base units a minute.
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


def allocate(amount_minor: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Shares of an amount by weight, whole and with exactly its sum: largest remainders first.

    Of equal remainders the greater weight comes first, then the key. Without any weight there is
    nobody to give it to: the result is empty.
    """
    total = sum(weights.values())
    if not total:
        return {}
    shares = {key: amount_minor * weight // total for key, weight in weights.items()}
    left = amount_minor - sum(shares.values())

    def rank(key: Key) -> tuple[int, int, str]:
        return (-(amount_minor * weights[key] % total), -weights[key], str(key))

    for key in sorted(weights, key=rank)[:left]:
        shares[key] += 1
    return shares
