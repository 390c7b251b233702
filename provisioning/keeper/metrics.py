"""What the keeper tells Prometheus, in its text format (version 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from brokers.etcd import MemberStatus
from provisioning.drivers.base import BrokerState
from provisioning.keeper.records import Phase

COUNTERS = {
    "wakes": "Clusters that were woken by a request",
    "sleeps": "Clusters that were put to sleep for want of clients",
    "restarts": "Brokers that ended by themselves",
    "replacements": "Brokers that were replaced because they did not answer",
    "scrapes": "Looks at a broker's metrics",
    "scrape_failures": "Looks that were not answered in time",
    "samples": "Samples that were taken and stored",
    "sample_failures": "Samples that were not taken or not stored",
    "store_failures": "Calls of the metadata store that failed",
    "driver_unknown": "Requests to the driver whose outcome is unknown",
    "etcd_compactions": "Compactions of etcd's history",
    "etcd_compaction_failures": "Attempts to compact etcd's history that failed",
}
ETCD_SIZES = {
    "file": "Size of the database file of etcd's fullest member",
    "in_use": "What is in use of that file",
    "quota": "Size of the file at which etcd refuses all writes",
}
WAKE_BUCKETS_S = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """Counts; nothing decides by it."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._wakes_s: list[int] = [0] * (len(WAKE_BUCKETS_S) + 1)
        self._wakes_sum_s = 0.0
        self.leading = False
        # Of etcd's fullest member; None where it is not known, as of a cell in SQLite.
        self.etcd: MemberStatus | None = None

    def count(self, name: str, by: int = 1) -> None:
        """Adds to a counter of `COUNTERS`."""
        self._counts[name] += by

    def woke(self, seconds: float) -> None:
        """A cluster serves so long after the request that woke it."""
        bucket = sum(seconds > bound for bound in WAKE_BUCKETS_S)
        self._wakes_s[bucket] += 1
        self._wakes_sum_s += seconds

    def render(self, phases: Mapping[Phase, int], brokers: Mapping[BrokerState, int]) -> str:
        """All of it; `phases`, `brokers`: how many clusters and brokers are in each state."""
        return "".join(f"{line}\n" for line in self._lines(phases, brokers))

    def _lines(
        self, phases: Mapping[Phase, int], brokers: Mapping[BrokerState, int]
    ) -> Iterator[str]:
        yield "# HELP freshet_keeper_leading 1 where this keeper has the cell, 0 on standby"
        yield "# TYPE freshet_keeper_leading gauge"
        yield f"freshet_keeper_leading {int(self.leading)}"
        yield "# HELP freshet_keeper_clusters Clusters by phase"
        yield "# TYPE freshet_keeper_clusters gauge"
        for phase in Phase:
            yield f'freshet_keeper_clusters{{phase="{phase}"}} {phases.get(phase, 0)}'
        yield "# HELP freshet_keeper_brokers Brokers by state"
        yield "# TYPE freshet_keeper_brokers gauge"
        for state in BrokerState:
            yield f'freshet_keeper_brokers{{state="{state}"}} {brokers.get(state, 0)}'
        for name, text in COUNTERS.items():
            yield f"# HELP freshet_keeper_{name}_total {text}"
            yield f"# TYPE freshet_keeper_{name}_total counter"
            yield f"freshet_keeper_{name}_total {self._counts[name]}"
        yield from self._etcd_lines()
        yield "# HELP freshet_keeper_wake_seconds From a wake request until a broker serves"
        yield "# TYPE freshet_keeper_wake_seconds histogram"
        reached = 0
        for bound, count in zip((*WAKE_BUCKETS_S, "+Inf"), self._wakes_s, strict=True):
            reached += count
            yield f'freshet_keeper_wake_seconds_bucket{{le="{bound}"}} {reached}'
        yield f"freshet_keeper_wake_seconds_sum {self._wakes_sum_s:.6f}"
        yield f"freshet_keeper_wake_seconds_count {reached}"

    def _etcd_lines(self) -> Iterator[str]:
        """Without a value where it is not known, or where there is no quota."""
        for name, text in ETCD_SIZES.items():
            size = getattr(self.etcd, f"{name}_bytes", 0)
            yield f"# HELP freshet_keeper_etcd_{name}_bytes {text}"
            yield f"# TYPE freshet_keeper_etcd_{name}_bytes gauge"
            if size > 0:
                yield f"freshet_keeper_etcd_{name}_bytes {size}"
