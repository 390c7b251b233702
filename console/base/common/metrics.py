"""Prometheus metrics of the control plane's processes: web, workers and the scheduler.

A process counts what passes through it. Metrics that are read from tables (how much waits, how far
metering is) are served by the scheduler alone, because there is one of it: applications register a
function for them. A worker's child processes write to shared files in the folder that
`PROMETHEUS_MULTIPROC_DIR` names, and their parent serves the sums.

No decision depends on a metric. The clock is read here only to time requests.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar

from django.contrib.admindocs.views import simplify_regex
from django.db import DatabaseError, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from console.base.common.tenancy import system_scope

logger = logging.getLogger(__name__)

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
UNMATCHED = "unmatched"
REQUEST_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TASK_BUCKETS_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

REQUESTS = Histogram(
    "freshet_http_request_seconds",
    "From a request to the head of its answer",
    ("method", "route", "status"),
    buckets=REQUEST_BUCKETS_S,
)
TASKS = Histogram(
    "freshet_task_seconds",
    "How long a task ran: sweeps, reconciles, roll-ups",
    ("task", "outcome"),
    buckets=TASK_BUCKETS_S,
)
TASKS_SENT = Counter("freshet_tasks_sent", "Tasks given to Celery's broker", ("task",))
HANDED_OVER = Counter(
    "freshet_outbox_handed_over", "Attempts to hand an outbox entry to the broker", ("result",)
)

Labels = TypeVar("Labels", bound=tuple[str, ...])
# Reads metric families from tables; called at each scrape, in the system's tenancy scope.
MetricSource = Callable[[], Sequence[Metric]]
_sources: dict[str, MetricSource] = {}


def register_metrics(name: str, source: MetricSource) -> None:
    """Registers a function that reads metrics from tables, in place of one of that name."""
    _sources[name] = source


def gauge(name: str, text: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    """Returns a family for `register_metrics`; `values` has a value by the values of `labels`."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for label_values, value in sorted(values.items()):
        family.add_metric(list(label_values), value)
    return family


class DatabaseCollector(Collector):
    """Collects the metrics of every registered source at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yields the families of all sources, and one that names those whose query failed."""
        failed: dict[tuple[str, ...], float] = {}
        try:
            for name, source in sorted(_sources.items()):
                failed[name,] = 0
                try:
                    with system_scope():
                        families = source()
                    yield from families
                except DatabaseError as error:
                    logger.warning("metrics.source_unknown part=%s error=%r", name, error)
                    failed[name,] = 1
        finally:
            # Each scrape has a thread of its own, whose connection nobody else would close.
            connections.close_all()
        yield gauge(
            "freshet_estate_unknown", "1 where a part could not be asked", ("part",), failed
        )

    def describe(self) -> list[Metric]:
        """Returns nothing: the database may not answer yet when this is registered."""
        return []


def serve_metrics(address: str, process: str, *, database: bool = False) -> str:
    """Serves `/metrics` at `host:port` from a thread; returns the address with its actual port.

    Serves nothing for the empty address. If the address cannot be listened on, it logs an error and
    returns an empty text: the service runs without metrics rather than not at all.
    """
    if not address:
        return ""
    host, _, port = address.rpartition(":")
    try:
        server, _ = start_http_server(
            int(port), host.strip("[]"), registry_to_serve(database=database)
        )
    except (OSError, ValueError, OverflowError) as error:
        logger.error("metrics.not_served process=%s address=%s: %s", process, address, error)
        return ""
    served = f"{host}:{server.server_port}"
    logger.info("metrics.served process=%s address=%s", process, served)
    return served


def registry_to_serve(*, database: bool) -> CollectorRegistry:
    """Returns the registry that a process serves, with the sums of any child processes.

    With `database` it also has the metrics that are read from tables at each scrape.
    """
    registry = REGISTRY
    if os.environ.get(MULTIPROCESS):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    if database:
        registry.register(DatabaseCollector())
    return registry


Handler = Callable[[HttpRequest], HttpResponseBase]


def metrics_middleware(get_response: Handler) -> Handler:
    """Times every request under its route: a path has ids, which would each make a new series."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = get_response(request)
        _observe_request(request, response, time.perf_counter() - began)
        return response

    return serve


def _observe_request(request: HttpRequest, response: HttpResponseBase, took_s: float) -> None:
    match = request.resolver_match
    route = UNMATCHED if match is None else route_of(match.route)
    method = request.method if request.method in METHODS else "other"
    REQUESTS.labels(method, route, str(response.status_code)).observe(took_s)


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


@cache
def route_of(pattern: str) -> str:
    """Returns a route's pattern as people write it: `/api/v1/clusters/<cluster>/topics`."""
    return str(simplify_regex(pattern)).replace("\\", "")
