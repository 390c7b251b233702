"""The agent's metrics for Prometheus."""

from __future__ import annotations

from console.base.runtime.metrics import ProcessMetrics

PREFIX = "freshet_metering"


class Metrics(ProcessMetrics):
    """The metrics of one agent. `docs/reference/agent-settings.md` lists them."""

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

    def report_pass(
        self, *, clusters: int, failing: int, covered_until_ms: int, now_ms: int
    ) -> None:
        """Sets the gauges after a pass. `covered_until_ms`: all usage up to then is recorded."""
        self._clusters(clusters)
        self._failed(failing)
        self._complete(covered_until_ms / 1000)
        self._lag(max(0, now_ms - covered_until_ms) / 1000)

    def set_pass_seconds(self, seconds: float) -> None:
        """Sets the duration of the last pass."""
        self._pass(seconds)

    def count_file(self, *, rows: int, size_bytes: int) -> None:
        """Counts a usage file that was written, with its rows and bytes."""
        self._files(1)
        self._rows(rows)
        self._bytes(size_bytes)

    def count_dropped_indexes(self, indexes: int) -> None:
        """Counts lane indexes that were dropped."""
        self._dropped(indexes)

    def count_error(self, kind: str) -> None:
        """Counts an error of a kind."""
        self._errors(kind)

    def error_count(self, kind: str) -> float:
        """The number of errors of a kind."""
        return self.value("errors_total", kind=kind)
