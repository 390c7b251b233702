"""What a process tells Prometheus, in its text format (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class ProcessMetrics:
    """The metrics of one process: `prefix` begins each name, and each has the labels `common`.

    There is one registry for each object, so that tests may have several in one process.
    """

    def __init__(self, prefix: str, common: Mapping[str, str] | None = None) -> None:
        self._prefix = prefix
        self._common = dict(common or {})
        self._registry = CollectorRegistry()

    def gauge(self, name: str, text: str) -> Callable[[float], None]:
        """A value that goes up and down: gives what sets it. Before that it has no value."""
        made = Gauge(self.name(name), text, list(self._common), registry=self._registry)
        return lambda value: made.labels(**self._common).set(value)

    def counter(self, name: str, text: str) -> Callable[[float], None]:
        """A value that only grows, which Prometheus sees as `<name>_total`: gives what adds."""
        made = Counter(self.name(name), text, list(self._common), registry=self._registry)
        return lambda by: made.labels(**self._common).inc(by)

    def counters(self, name: str, text: str, label: str) -> Callable[[str], None]:
        """A counter for each value of a further label: gives what adds 1 to the one of a value."""
        made = Counter(self.name(name), text, [*self._common, label], registry=self._registry)
        return lambda value: made.labels(**self._common, **{label: value}).inc()

    def families(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Adds metrics whose values are asked for at each `render`."""
        self._registry.register(_Asked(collect))

    def value(self, name: str, **labels: str) -> float:
        """The value of a sample, by its full name behind the prefix; 0 where there is none yet."""
        found = self._registry.get_sample_value(self.name(name), {**self._common, **labels})
        return found or 0.0

    def render(self) -> str:
        """All of them, as text."""
        return generate_latest(self._registry).decode()

    def name(self, name: str) -> str:
        """The full name of a metric."""
        return f"{self._prefix}_{name}"


class _Asked(Collector):
    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of a scrape: registering must not ask."""
        return ()
