"""What is billed for a set of usage files: every identity once, conflicts not at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from metering.events.manifests import UsageManifest
from metering.events.records import AGREEING, LANE_IDENTITY, TIME_IDENTITY, decode_usage
from metering.events.times import HOUR_MS, floor_to
from tests.metering.properties.folder import MemoryStore
from tests.metering.properties.model import Quantities


def billed(store: MemoryStore, manifests: Iterable[UsageManifest]) -> Quantities:
    """Quantities by meter, principal and hour of the rows behind these manifests."""
    seen: dict[tuple[Any, ...], set[tuple[Any, ...]]] = defaultdict(set)
    for manifest in manifests:
        for row in decode_usage(store.get(manifest.key)).to_pylist():
            columns = TIME_IDENTITY if row["block"] is None else LANE_IDENTITY
            identity = tuple(row[name] for name in columns)
            seen[identity].add(tuple(row[name] for name in AGREEING))
    sums: Quantities = Counter()
    for identity, said in seen.items():
        if len(said) == 1:
            row = dict(zip(AGREEING, next(iter(said)), strict=True))
            whose = dict(zip(LANE_IDENTITY, identity, strict=False))
            hour_ms = floor_to(row["window_start_ms"], HOUR_MS)
            sums[whose["meter"], whose["principal"], hour_ms] += row["quantity"]
    return sums
