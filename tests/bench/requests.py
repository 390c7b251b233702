"""HTTP requests at a fixed rate, whatever the answers take: an open loop.

A request's latency counts from the moment that it was due, so that a server that stalls does not
lower the rate that it is measured at.
"""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Request:
    """One request; `expected` is the status of its answer."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    expected: int = 200


@dataclass
class Load:
    """Requests of one kind at `rate` a second for `seconds`; `request` makes the n-th."""

    name: str
    rate: float
    seconds: float
    request: Callable[[int], Request]
    latencies_ms: list[float] = field(default_factory=list)
    bytes_answered: int = 0


def run_loads(port: int, key: str, loads: list[Load], *, workers: int = 8) -> None:
    """Runs all of them at once, each with connections of its own that stay open."""
    began = time.monotonic() + 0.5
    threads = [
        threading.Thread(target=_worker, args=(port, key, load, began, worker, workers))
        for load in loads
        for worker in range(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for load in loads:
        if len(load.latencies_ms) != round(load.rate * load.seconds):
            message = f"{load.name}: {len(load.latencies_ms)} answers as expected"
            raise RuntimeError(message)


def _worker(port: int, key: str, load: Load, began: float, worker: int, workers: int) -> None:
    """Sends every `workers`-th request of a load, beginning with the `worker`-th."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    clock = threading.Event()
    for number in range(worker, round(load.rate * load.seconds), workers):
        due = began + number / load.rate
        clock.wait(max(0.0, due - time.monotonic()))
        size = send_request(connection, key, load.request(number))
        load.latencies_ms.append((time.monotonic() - due) * 1000)
        load.bytes_answered += size
    connection.close()


def send_request(connection: http.client.HTTPConnection, key: str, request: Request) -> int:
    """Sends a request; returns the bytes of its answer. Raises if the status is another one."""
    headers = {"Authorization": f"Bearer {key}"}
    body = None
    if request.body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(request.body)
    connection.request(request.method, request.path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != request.expected:
        message = f"{request.method} {request.path}: {answer.status} {content[:500]!r}"
        raise RuntimeError(message)
    return len(content)


def percentiles(samples: list[float]) -> dict[str, float]:
    """p50, p95, p99 and the most, in the samples' unit."""
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {
        "p50": round(cuts[49], 1),
        "p95": round(cuts[94], 1),
        "p99": round(cuts[98], 1),
        "max": round(max(samples), 1),
    }
