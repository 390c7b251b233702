"""Forecasts of a month's quantities. Pure.

Quantities are base units of their meters, times milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from billing.catalog import TRAFFIC
from billing.choices import Meter
from billing.money import allocate_amount

# Meters that grow with time while nobody uses anything.
ACCRUING = frozenset({Meter.STORAGE.value, Meter.PARTITIONS.value})
SECOND_MS, MINUTE_MS = 1_000, 60_000
# A rate is taken over this time at least: one minute of traffic says nothing about a month.
BASIS_MIN_MS = 60 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class HeldTraffic:
    """What keeps traffic from going on as before: (cluster, meter) of what is `refused`, and the
    bytes a second that a cluster has at most, of produce and fetch together."""

    refused: Collection[tuple[str, str]] = ()
    bytes_per_s_max: int | None = None


def forecast_totals(
    totals: Mapping[tuple[str, str], int],
    rates: Mapping[tuple[str, str], int],
    *,
    since_ms: int,
    until_ms: int,
    end_ms: int,
    held: HeldTraffic = HeldTraffic(),
) -> dict[tuple[str, str], int]:
    """(cluster, meter) → quantity at the month's end, if usage goes on as it does now.

    `totals` is what was used in [since, until). Traffic goes on at its average rate in
    that time; storage and partitions go on at their present `rates`, in base units a minute.
    Traffic that is `held` at present stays so.
    """
    left_ms = max(0, end_ms - until_ms)
    basis_ms = max(until_ms - since_ms, BASIS_MIN_MS)
    forecast = dict.fromkeys(totals.keys() | rates.keys(), 0) | dict(totals)
    more: dict[str, dict[str, int]] = {}
    for key in forecast:
        cluster, meter = key
        if meter in ACCRUING:
            forecast[key] += rates.get(key, 0) * left_ms // MINUTE_MS
        elif key not in held.refused:
            more.setdefault(cluster, {})[meter] = forecast[key] * left_ms // basis_ms
    for cluster, quantities in more.items():
        shares = _slowed_down(quantities, held.bytes_per_s_max, left_ms)
        for meter, quantity in shares.items():
            forecast[cluster, meter] += quantity
    return forecast


def _slowed_down(
    quantities: Mapping[str, int], bytes_per_s_max: int | None, left_ms: int
) -> Mapping[str, int]:
    """What one cluster's meters of traffic have more, where it has a rate at most."""
    traffic = {meter: quantity for meter, quantity in quantities.items() if meter in TRAFFIC}
    most = sum(traffic.values())
    if bytes_per_s_max is not None:
        most = min(most, bytes_per_s_max * left_ms // SECOND_MS)
    return {**quantities, **allocate_amount(most, traffic)}
