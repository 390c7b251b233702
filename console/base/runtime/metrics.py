"""Metrics of a process, in Prometheus's text format (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class ProcessMetrics:
    """The metrics of one process: names begin with `prefix`, samples have the labels `common`.

    Every object has a registry of its own, so that tests may have several in one process.
    """

    def __init__(self, prefix: str, common: Mapping[str, str] | None = None) -> None:
        self._prefix = prefix
        self._common = dict(common or {})
        self._registry = CollectorRegistry()

    def gauge(self, name: str, text: str) -> Callable[[float], None]:
        """Adds a gauge; returns the function that sets it. It has no sample before that."""
        gauge = Gauge(self.name(name), text, list(self._common), registry=self._registry)
        return lambda value: gauge.labels(**self._common).set(value)

    def counter(self, name: str, text: str) -> Callable[[float], None]:
        """Adds the counter `<name>_total`; returns the function that adds to it."""
        counter = Counter(self.name(name), text, list(self._common), registry=self._registry)
        return lambda by: counter.labels(**self._common).inc(by)

    def counters(self, name: str, text: str, label: str) -> Callable[[str], None]:
        """Adds a counter with one more label; returns the function that adds 1 for its value."""
        counter = Counter(self.name(name), text, [*self._common, label], registry=self._registry)
        return lambda value: counter.labels(**self._common, **{label: value}).inc()

    def families(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Adds metrics that `collect` returns anew at each `render`."""
        self._registry.register(_FamilyCollector(collect))

    def value(self, name: str, **labels: str) -> float:
        """Returns the value of a sample, by its name without the prefix; 0 if there is none yet."""
        sample = self._registry.get_sample_value(self.name(name), {**self._common, **labels})
        return sample or 0.0

    def render(self) -> str:
        """Returns all metrics in the text format."""
        return generate_latest(self._registry).decode()

    def name(self, name: str) -> str:
        """Returns the full name of a metric, with the prefix."""
        return f"{self._prefix}_{name}"


class _FamilyCollector(Collector):
    """Calls a function at each scrape."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()

    def describe(self) -> Iterable[Metric]:
        """Returns nothing, so that registering does not call the function."""
        return ()
