"""REST: a list of 1,000 topics at 10/s while topics are created at 5/s, of a cluster that runs.

Real HTTP to the web server as `make up` starts it (one process), PostgreSQL and Redis of its own,
a keeper and a broker of release builds. A created topic is led by the broker when its request is
answered. Latencies count from when a request was due. The topics that one round creates are removed
before the next, so that a list has 1,000 to 1,000 + those of the round.
"""

from __future__ import annotations

import http.client
import os
import statistics
from collections.abc import Sequence

from tests.bench import proc
from tests.bench.control_plane import ControlPlane
from tests.bench.report import Report, progress, spread
from tests.bench.requests import Load, Request, percentiles, run_loads, send_request
from tests.bench.service import CLUSTER, Service
from tests.bench.sides import FRESHET, GENERATOR_CPU, chosen

SIDES = (FRESHET,)
ROUNDS = 3
TOPICS = 1_000
LISTS_PER_S, CREATES_PER_S = 10.0, 5.0
SECONDS = 20.0
TOPICS_PATH = f"/api/v1/clusters/{CLUSTER}/topics"


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    service = Service("api", idle_timeout_ms=0)
    try:
        store = service.store.cluster(CLUSTER)
        for number in range(TOPICS):
            store.create_topic(f"t-{number:04}", configs={"retention.ms": "604800000"})
        service.start_keeper()
        service.store.request_wake(CLUSTER, requested_at_ms=0, by="bench")
        service.wait_for(["running"])
        progress("the cluster runs")
        with ControlPlane("api", service.cell) as web:
            web.add_tenant(id=CLUSTER, name="bench", host="bench", ports=[service.port])
            web.start_web()
            progress("the web server answers")
            os.sched_setaffinity(0, {int(GENERATOR_CPU)})
            return _measure(web, rounds)
    finally:
        service.close()


def _measure(web: ControlPlane, rounds: int) -> Report:
    lists, creates, cpu, size = [], [], [], 0
    for number in range(-1, rounds):
        # The first only warms up what is made once: connections, clients, compiled queries.
        seconds = SECONDS if number >= 0 else 2.0
        listing = Load("list", LISTS_PER_S, seconds, lambda _: _list_request())
        creating = Load("create", CREATES_PER_S, seconds, _create_request)
        before = proc.usage([web.pid]).cpu_seconds
        run_loads(web.port, web.key, [listing, creating])
        used = proc.usage([web.pid]).cpu_seconds - before
        _remove_topics(web, round(CREATES_PER_S * seconds))
        if number < 0:
            continue
        lists.append(percentiles(listing.latencies_ms))
        creates.append(percentiles(creating.latencies_ms))
        cpu.append(used / seconds)
        size = listing.bytes_answered // len(listing.latencies_ms)
        progress(f"round {number + 1} of {rounds}: {lists[-1]}, {creates[-1]}")
    list_p99 = statistics.median(latencies["p99"] for latencies in lists)
    return Report(
        bench="api",
        value=list_p99,
        unit="ms",
        peer=None,
        details={
            "list_p99_ms": list_p99,
            "create_p99_ms": statistics.median(create["p99"] for create in creates),
            "list_ms": lists,
            "create_ms": creates,
            "topics": TOPICS,
            "list_bytes": size,
            "lists_per_s": LISTS_PER_S,
            "creates_per_s": CREATES_PER_S,
            "rounds": rounds,
            # Of one core, which the broker and the keeper have to share.
            "web_cpu": spread(cpu),
            "aim_list_p99_ms": 100,
            "aim_create_p99_ms": 300,
        },
    )


def _list_request() -> Request:
    return Request("GET", f"{TOPICS_PATH}?limit=2000")


def _create_request(number: int) -> Request:
    return Request("POST", TOPICS_PATH, {"name": f"new-{number}"}, expected=201)


def _remove_topics(web: ControlPlane, count: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    for number in range(count):
        request = Request("DELETE", f"{TOPICS_PATH}/new-{number}", expected=204)
        send_request(connection, web.key, request)
    connection.close()
