"""Forecasts of a month's quantities. Pure.

Quantities are base units of their meters, times milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping

from billing.choices import Meter

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
