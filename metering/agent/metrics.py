"""The agent's metrics, by Prometheus' names."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

PREFIX = "freshet_metering"


class Metrics:
    """What an agent counts; one registry each, so that tests may run several."""

    def __init__(self, cell: str) -> None:
        self._registry = CollectorRegistry()
        labels = ["cell"]
        self._lag = self._gauge("lag_seconds", "Time since which usage may not be recorded", labels)
        self._complete = self._gauge(
            "covered_until_seconds", "Unix time up to which all usage is recorded", labels
        )
        self._clusters = self._gauge("clusters", "Clusters that this agent meters", labels)
        self._failed = self._gauge(
            "clusters_failing", "Clusters whose last look failed in part or whole", labels
        )
        self._pass = self._gauge("pass_seconds", "How long the last pass took", labels)
        self._rows = self._counter("rows", "Rows written", labels)
        self._bytes = self._counter("file_bytes", "Bytes of usage files written", labels)
        self._files = self._counter("files", "Usage files written", labels)
        self._dropped = self._counter("indexes_dropped", "Lane indexes dropped", labels)
        self._errors = self._counter("errors", "What went wrong, by kind", [*labels, "kind"])
        self._cell = cell

    def look(self, *, clusters: int, failing: int, covered_until_ms: int, now_ms: int) -> None:
        """After a pass."""
        self._clusters.labels(self._cell).set(clusters)
        self._failed.labels(self._cell).set(failing)
        self._complete.labels(self._cell).set(covered_until_ms / 1000)
        self._lag.labels(self._cell).set(max(0, now_ms - covered_until_ms) / 1000)

    def passed(self, seconds: float) -> None:
        """A pass took so long."""
        self._pass.labels(self._cell).set(seconds)

    def wrote(self, *, rows: int, size_bytes: int) -> None:
        """A usage file counts."""
        self._files.labels(self._cell).inc()
        self._rows.labels(self._cell).inc(rows)
        self._bytes.labels(self._cell).inc(size_bytes)

    def dropped(self, indexes: int) -> None:
        """Indexes are gone."""
        self._dropped.labels(self._cell).inc(indexes)

    def error(self, kind: str) -> None:
        """Something went wrong."""
        self._errors.labels(self._cell, kind).inc()

    def errors(self, kind: str) -> float:
        """How often something went wrong."""
        name = f"{PREFIX}_errors_total"
        value = self._registry.get_sample_value(name, {"cell": self._cell, "kind": kind})
        return value or 0.0

    def render(self) -> str:
        """All of them, as text."""
        return generate_latest(self._registry).decode()

    def _gauge(self, name: str, text: str, labels: list[str]) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, labels, registry=self._registry)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, labels, registry=self._registry)
