"""A console's pages of groups of a cluster that runs with 10,000 of them.

Real HTTP, as in `api`: pages of 50 groups, and ten open pages of one group each, which the console
reads every two seconds. What is counted beside the time is what is asked of the broker over Kafka:
requests of each kind, from its own metrics.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import urllib.request
from collections import Counter
from collections.abc import Sequence
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from brokers.metadata import ClusterStatus
from brokers.secrets import SUPER_USER, super_password
from tests.bench.control_plane import ControlPlane
from tests.bench.report import Report, progress
from tests.bench.requests import Load, Request, percentiles, run_loads
from tests.bench.service import CLUSTER, Service
from tests.bench.sides import FRESHET, GENERATOR_CPU, chosen

SIDES = (FRESHET,)
ROUNDS = 3
GROUPS = 10_000
PARTITIONS = 3
PAGES_PER_S = 2.0
# Ten open pages of a group.
GROUPS_PER_S = 5.0
SECONDS = 20.0
TOPIC = "orders"
PATH = f"/api/v1/clusters/{CLUSTER}/groups"
REQUESTS = re.compile(
    r'^kafka_network_requestmetrics_requests_total\{request="(\w+)"\} (\d+)', re.MULTILINE
)


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    service = Service("lag_scale", idle_timeout_ms=0)
    try:
        service.store.cluster(CLUSTER).create_topic(TOPIC, partitions=PARTITIONS)
        service.start_keeper()
        service.store.request_wake(CLUSTER, requested_at_ms=0, by="bench")
        status = service.wait_for(["running"])
        _make_groups(service, status)
        with ControlPlane("lag_scale", service.cell) as web:
            web.add_tenant(id=CLUSTER, name="bench", host="bench", ports=[service.port])
            web.start_web()
            progress("the web server answers")
            os.sched_setaffinity(0, {int(GENERATOR_CPU)})
            return _measure(web, status, rounds)
    finally:
        service.close()


def _make_groups(service: Service, status: ClusterStatus) -> None:
    """Makes groups that committed once, in the middle of a topic with records."""
    password = super_password(service.secret, CLUSTER)
    settings: dict[str, object] = {
        "bootstrap.servers": status.brokers[0].kafka,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": SUPER_USER,
        "sasl.password": password,
    }
    producer = Producer(settings)
    for number in range(30 * PARTITIONS):
        producer.produce(TOPIC, b"x" * 100, partition=number % PARTITIONS)
    producer.flush(60)
    admin = AdminClient(settings)
    waiting: list[Any] = []
    for number in range(GROUPS):
        offsets = [TopicPartition(TOPIC, at, number % 30) for at in range(PARTITIONS)]
        request = ConsumerGroupTopicPartitions(f"group-{number:05}", offsets)
        waiting += admin.alter_consumer_group_offsets([request]).values()
        if len(waiting) == 200:
            _wait_for_all(waiting)
    _wait_for_all(waiting)
    progress(f"{GROUPS} groups")


def _wait_for_all(waiting: list[Any]) -> None:
    for future in waiting:
        for partition in future.result(60).topic_partitions:
            if partition.error is not None:
                raise RuntimeError(str(partition.error))
    waiting.clear()


def _measure(web: ControlPlane, status: ClusterStatus, rounds: int) -> Report:
    cursors = _cursors(web, 20)
    pages, single, asked = [], [], Counter[str]()
    for number in range(-1, rounds):
        seconds = SECONDS if number >= 0 else 2.0
        load = Load("page", PAGES_PER_S, seconds, lambda n: _page(cursors[n % len(cursors)]))
        group = Load("group", GROUPS_PER_S, seconds, _group)
        before = _asked(status)
        run_loads(web.port, web.key, [load, group], workers=4)
        if number < 0:
            continue
        asked += _asked(status) - before
        pages.append(percentiles(load.latencies_ms))
        single.append(percentiles(group.latencies_ms))
        progress(f"round {number + 1} of {rounds}: {pages[-1]}, {single[-1]}")
    count = rounds * round((PAGES_PER_S + GROUPS_PER_S) * SECONDS)
    value = statistics.median(page["p95"] for page in pages)
    return Report(
        bench="lag_scale",
        value=value,
        unit="ms",
        peer=None,
        details={
            "groups": GROUPS,
            "page_ms": pages,
            "pages_per_s": PAGES_PER_S,
            "group_ms": single,
            "groups_per_s": GROUPS_PER_S,
            "rounds": rounds,
            "broker_requests_a_page": {n: round(c / count, 2) for n, c in sorted(asked.items())},
            "aim_ms": 300,
        },
    )


def _page(cursor: str) -> Request:
    return Request("GET", f"{PATH}?limit=50&cursor={cursor}")


def _group(number: int) -> Request:
    return Request("GET", f"{PATH}/group-{number % 10:05}")


def _cursors(web: ControlPlane, count: int) -> list[str]:
    """The cursors of the first `count` pages."""
    cursors = [""]
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    while len(cursors) < count:
        address = f"{PATH}?limit=50&cursor={cursors[-1]}"
        connection.request("GET", address, headers={"Authorization": f"Bearer {web.key}"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != http.client.OK or len(content["items"]) != 50:
            message = f"{answer.status}: {str(content)[:500]}"
            raise RuntimeError(message)
        cursors.append(content["next_cursor"])
    connection.close()
    return cursors


def _asked(status: ClusterStatus) -> Counter[str]:
    """Requests that the broker answered, by kind."""
    address = f"http://{status.brokers[0].metrics}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    return Counter({name: int(count) for name, count in REQUESTS.findall(text)})
