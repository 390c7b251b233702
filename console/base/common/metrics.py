"""What the control plane's processes tell Prometheus: web, workers and the scheduler.

A process counts what passes through it. What the database knows (how much waits, how far the meter
is) is told by the scheduler alone, of which there is one: applications register a function for it.
A worker's children share files in the folder that `PROMETHEUS_MULTIPROC_DIR` names; their parent
adds them up.

Nothing decides by a metric. The stopwatch that times a request is the only clock here.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar, cast

from asgiref.sync import iscoroutinefunction
from django.contrib.admindocs.views import simplify_regex
from django.db import DatabaseError, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
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
# Families from the database: the scheduler asks for them at each scrape, in the system's scope.
MetricSource = Callable[[], Sequence[Metric]]
_sources: dict[str, MetricSource] = {}


def register_metrics(name: str, tell: MetricSource) -> None:
    """Adds what an application's tables tell; another one of this name is replaced."""
    _sources[name] = tell


def gauge(name: str, text: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    """A family for `register_metrics`: a value for each combination of labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for given, value in sorted(values.items()):
        family.add_metric(list(given), value)
    return family


class DatabaseCollector(Collector):
    """Asks every application at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """What the database knows. Of an application that cannot tell, only that."""
        failed: dict[tuple[str, ...], float] = {}
        try:
            for name, tell in sorted(_sources.items()):
                failed[name,] = 0
                try:
                    with system_scope():
                        found = tell()
                    yield from found
                except DatabaseError as error:
                    logger.warning("metrics.source_unknown part=%s error=%r", name, error)
                    failed[name,] = 1
        finally:
            # The thread that serves a scrape ends with it.
            connections.close_all()
        yield gauge(
            "freshet_estate_unknown", "1 where a part could not be asked", ("part",), failed
        )

    def describe(self) -> list[Metric]:
        """Nothing ahead of a scrape: the database may be away when this is registered."""
        return []


def serve_metrics(address: str, process: str, *, database: bool = False) -> str:
    """Serves `/metrics` at `host:port` from a thread; gives the address, with its real port.

    The empty address serves nothing. One that cannot be listened on is said, and stops nobody:
    a service without metrics is better than none.
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
    """The registry that a process serves: of all its children where it has some.

    With `database`, also what the tables say at the time of the scrape.
    """
    registry = REGISTRY
    if os.environ.get(MULTIPROCESS):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    if database:
        registry.register(DatabaseCollector())
    return registry


Handler = Callable[[HttpRequest], HttpResponseBase]


@sync_and_async_middleware
def metrics_middleware(get_response: Handler) -> Callable[[HttpRequest], object]:
    """Times every request by its route, never by its path: ids would make a series each."""
    if iscoroutinefunction(get_response):
        answer = cast("Callable[[HttpRequest], Awaitable[HttpResponseBase]]", get_response)

        async def serve_async(request: HttpRequest) -> HttpResponseBase:
            began = time.perf_counter()
            response = await answer(request)
            _observe(request, response, time.perf_counter() - began)
            return response

        return serve_async

    def serve(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = get_response(request)
        _observe(request, response, time.perf_counter() - began)
        return response

    return serve


def _observe(request: HttpRequest, response: HttpResponseBase, took_s: float) -> None:
    match = request.resolver_match
    route = UNMATCHED if match is None else route_of(match.route)
    method = request.method if request.method in METHODS else "other"
    REQUESTS.labels(method, route, str(response.status_code)).observe(took_s)


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


@cache
def route_of(pattern: str) -> str:
    """A route as people write it: `/api/v1/clusters/<cluster>/topics`."""
    return str(simplify_regex(pattern)).replace("\\", "")
