"""Budgets that act during the load: the traffic of clusters is refused or slowed, as by them.

The limits are set where the control plane sets them, in each cluster's metadata. What a client is
handed or acknowledged although it was refused is counted at the proxy.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from brokers.metadata import ClusterStore, TrafficLimit
from brokers.metadata_records import TrafficLimitKind
from tests.metering.proof.counting_proxy import SERVICE, Counted, unix_ms
from tests.metering.proof.tenants import Tenant

KINDS: Sequence[TrafficLimitKind] = ("refuse", "throttle", "refuse_produce")
REASON = "The budget of the proof is used up."
# Below what the load would use, so that clients feel it at once.
BYTES_PER_S = 40_000
# Brokers follow their metadata within a second. A request may be under way then, and a machine
# under load is late.
SETTLING_MS = 3000


@dataclass
class Spell:
    """A limit that was in force from `since_ms` on. `until_ms` None: to the end of the story."""

    kind: TrafficLimitKind
    since_ms: int
    until_ms: int | None = None

    def slipped(self, tenant: Tenant) -> int:
        """Bytes that a client had although they were to be refused, once brokers must know."""
        seen = tenant.seen
        refused: list[Iterable[Counted]] = []
        if self.kind != "throttle":
            refused.append(seen.acked)
        if self.kind == "refuse":
            refused.append(seen.handed)
        return sum(one.size for one in itertools.chain(*refused) if self._covers(one))

    def _covers(self, one: Counted) -> bool:
        begun = one.at_ms >= self.since_ms + SETTLING_MS
        over = self.until_ms is not None and one.at_ms >= self.until_ms
        return begun and not over and one.principal != SERVICE


class LimitCourse:
    """One limit after the other on one tenant, with time between them, while a load runs.

    `count` of them within `load_s` seconds, of each kind in turn. With `stays` the last one refuses
    everything, and is never lifted: what is stored is kept under it.
    """

    def __init__(
        self, tenant: Tenant, store: ClusterStore, seed: int, count: int, load_s: float, stays: bool
    ) -> None:
        self.tenant, self.store, self.stays = tenant, store, stays
        self.spells: list[Spell] = []
        self.failures: list[str] = []
        draw = random.Random(f"{seed} {tenant.number} limits")
        self._moments = list(moments(draw, count, load_s))
        self._kinds = [KINDS[(tenant.number - 1 + n) % len(KINDS)] for n in range(count)]
        if stays and count:
            self._kinds[-1] = "refuse"
        self._clock = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    def start(self) -> None:
        """Begins; the load begins at the same time."""
        self._thread.start()

    def wait(self) -> None:
        """Waits until all limits were in force and lifted."""
        self._thread.join()

    def slipped(self) -> int:
        """As `Spell.slipped`, of all limits."""
        return sum(spell.slipped(self.tenant) for spell in self.spells)

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as error:  # the story raises it once the load ends
            self.failures.append(f"limits of {self.tenant.cluster_id}: {error!r}")

    def _run(self) -> None:
        began = time.monotonic()
        for number, (kind, (start_s, end_s)) in enumerate(
            zip(self._kinds, self._moments, strict=True)
        ):
            self._clock.wait(max(0.0, began + start_s - time.monotonic()))
            rate = BYTES_PER_S if kind == "throttle" else None
            self.store.set_traffic_limit(TrafficLimit(kind=kind, reason=REASON, bytes_per_s=rate))
            self.spells.append(Spell(kind, unix_ms()))
            if self.stays and number == len(self._kinds) - 1:
                return
            self._clock.wait(max(0.0, began + end_s - time.monotonic()))
            self.spells[-1].until_ms = unix_ms()
            self.store.set_traffic_limit(None)


def moments(draw: random.Random, count: int, load_s: float) -> Iterator[tuple[float, float]]:
    """When limits begin and end, in seconds: each in a part of the load of its own, half of it."""
    part = load_s / max(1, count)
    for number in range(count):
        start = (number + draw.uniform(0.1, 0.3)) * part
        yield start, start + part / 2
