"""The agent's metrics, by Prometheus' names."""

from __future__ import annotations

from console.base.runtime.metrics import ProcessMetrics

PREFIX = "freshet_metering"


class Metrics(ProcessMetrics):
    """What an agent counts."""

    def __init__(self, cell: str) -> None:
        super().__init__(PREFIX, {"cell": cell})
        self._lag = self.gauge("lag_seconds", "Time since which usage may not be recorded")
        self._complete = self.gauge(
            "covered_until_seconds", "Unix time up to which all usage is recorded"
        )
        self._clusters = self.gauge("clusters", "Clusters that this agent meters")
        self._failed = self.gauge(
            "clusters_failing", "Clusters whose last look failed in part or whole"
        )
        self._pass = self.gauge("pass_seconds", "How long the last pass took")
        self._rows = self.counter("rows", "Rows written")
        self._bytes = self.counter("file_bytes", "Bytes of usage files written")
        self._files = self.counter("files", "Usage files written")
        self._dropped = self.counter("indexes_dropped", "Lane indexes dropped")
        self._errors = self.counters("errors", "What went wrong, by kind", "kind")

    def look(self, *, clusters: int, failing: int, covered_until_ms: int, now_ms: int) -> None:
        """After a pass."""
        self._clusters(clusters)
        self._failed(failing)
        self._complete(covered_until_ms / 1000)
        self._lag(max(0, now_ms - covered_until_ms) / 1000)

    def passed(self, seconds: float) -> None:
        """A pass took so long."""
        self._pass(seconds)

    def wrote(self, *, rows: int, size_bytes: int) -> None:
        """A usage file counts."""
        self._files(1)
        self._rows(rows)
        self._bytes(size_bytes)

    def dropped(self, indexes: int) -> None:
        """Indexes are gone."""
        self._dropped(indexes)

    def error(self, kind: str) -> None:
        """Something went wrong."""
        self._errors(kind)

    def errors(self, kind: str) -> float:
        """How often something went wrong."""
        return self.value("errors_total", kind=kind)
