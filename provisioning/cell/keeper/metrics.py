"""The keeper's metrics for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TypeVar

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from brokers.etcd import MemberStatus
from console.base.runtime.metrics import ProcessMetrics
from provisioning.cell.drivers.base import BrokerState
from provisioning.cell.keeper.records import ClusterPhase

PREFIX = "freshet_keeper"
COUNTERS = {
    "wakes": "Clusters that were woken by a request",
    "sleeps": "Clusters that were put to sleep for want of clients",
    "restarts": "Brokers that ended by themselves",
    "replacements": "Brokers that were replaced because they did not answer",
    "scrapes": "Looks at a broker's status",
    "scrape_failures": "Looks that were not answered in time",
    "status_bytes": "Bytes that were sent and received for looks at brokers",
    "samples": "Samples of clusters that were taken",
    "sample_failures": "Samples of clusters that were not taken",
    "sample_files": "Files with samples that were written",
    "sample_file_bytes": "Their size, compressed",
    "sample_file_failures": "Attempts to write such a file that failed",
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


State = TypeVar("State", ClusterPhase, BrokerState)


class Metrics(ProcessMetrics):
    """Counters and gauges of the keeper. No decision depends on them."""

    def __init__(self) -> None:
        super().__init__(PREFIX)
        self._counts: Counter[str] = Counter()
        self._wakes_s: list[int] = [0] * (len(WAKE_BUCKETS_S) + 1)
        self._wakes_sum_s = 0.0
        self.leading = False
        # The status of etcd's fullest member; None where it is not known, as of a cell in SQLite.
        self.etcd: MemberStatus | None = None
        # Functions that count the clusters and brokers in each state. A keeper sets them once it
        # has the cell.
        self.phases: Callable[[], Mapping[ClusterPhase, int]] = dict
        self.brokers: Callable[[], Mapping[BrokerState, int]] = dict
        self.families(self._families)

    def count(self, name: str, by: int = 1) -> None:
        """Adds to a counter of `COUNTERS`."""
        self._counts[name] += by

    def woke(self, seconds: float) -> None:
        """Records a wake: the time from its request until the cluster serves."""
        bucket = sum(seconds > bound for bound in WAKE_BUCKETS_S)
        self._wakes_s[bucket] += 1
        self._wakes_sum_s += seconds

    def _families(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            self.name("leading"), "1 where this keeper has the cell, 0 on standby", self.leading
        )
        yield self._states("clusters", "Clusters by phase", "phase", ClusterPhase, self.phases())
        yield self._states("brokers", "Brokers by state", "state", BrokerState, self.brokers())
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(self.name(name), text, self._counts[name])
        for name, text in ETCD_SIZES.items():
            # Without a value where it is not known, or where there is no quota.
            size = getattr(self.etcd, f"{name}_bytes", 0)
            yield GaugeMetricFamily(
                self.name(f"etcd_{name}_bytes"), text, size if size > 0 else None
            )
        yield HistogramMetricFamily(
            self.name("wake_seconds"),
            "From a wake request until a broker serves",
            self._wakes(),
            self._wakes_sum_s,
        )

    def _states(
        self,
        name: str,
        text: str,
        label: str,
        states: Iterable[State],
        counted: Mapping[State, int],
    ) -> Metric:
        family = GaugeMetricFamily(self.name(name), text, labels=[label])
        for state in states:
            family.add_metric([state], counted.get(state, 0))
        return family

    def _wakes(self) -> list[tuple[str, float]]:
        """The cumulative histogram buckets: how many wakes took at most each bound."""
        bounds = [str(bound) for bound in WAKE_BUCKETS_S]
        return list(zip([*bounds, "+Inf"], accumulate(self._wakes_s), strict=True))
