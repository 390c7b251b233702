"""What a web process computes for one organization: beside it, another one is answered soon."""

from __future__ import annotations

import json
import statistics
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from provisioning.administration.services.tail_shares import BURST_S, RECORDS_PER_S
from provisioning.kafka.tail import BATCH_RECORDS_MAX
from tests.isolation.crowds import client, looping
from tests.service.api import Api
from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import wait_until

CONNECTIONS = 32
TOPICS, VICTIM_REQUESTS = 400, 20
TAILS, TAILED_S, PRODUCED_PER_S = 20, 6.0, 9_000
TOPIC = "t"
# A filter by a path parses each such record, of a kilobyte in the log, for each tail.
FILTER = "value.a.b = 1 or value.zz = 2"
BOMBED_S, BOMBS_PER_S = 8.0, 20
LISTS, FEW_LISTS = 300_000, 40_000
PAGES = 2
# Beside them another organization waits at most for so long more than without them.
QUIET_S, LONGER_S = 2.0, 0.25


def slowest(times):
    """The slowest of the quickest third of the time: another process is met in one of them."""
    size = len(times) // 3
    return min(max(times[start : start + size]) for start in (0, size, 2 * size))


def timed(http, path: str) -> float:
    """Seconds that an answer took, whatever it was."""
    began = time.monotonic()
    http.get(path)
    return time.monotonic() - began


def test_the_largest_lists_of_one_organization(service, attacker, victim):
    cluster_id = attacker.create_cluster("large")
    admin = AdminClient(librdkafka_settings(attacker.connect(cluster_id)))
    made = admin.create_topics([NewTopic(f"topic-{n:04}", 1) for n in range(TOPICS)])
    for future in made.values():
        future.result(60)
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    path = f"/clusters/{cluster_id}/topics?limit=1000"
    took: list[float] = []
    https = [client(service, key) for _ in range(CONNECTIONS)]

    def ask(number: int) -> int:
        began = time.monotonic()
        answer = https[number].get(path)
        if answer.is_success:
            took.append(time.monotonic() - began)
        return answer.status_code

    with ExitStack() as stack:
        for http in https:
            stack.enter_context(http)
        with looping(CONNECTIONS, ask) as statuses:
            wait_until(lambda: len(took) >= 2 * CONNECTIONS, "the lists are answered")
            took.clear()
            waited = [timed(victim.http, "/clusters") for _ in range(VICTIM_REQUESTS)]
            wait_until(lambda: len(took) >= CONNECTIONS, "and go on")
    assert set(statuses) <= {200, 429}
    # The attacker waits in its own line: were there one line for all, both would take as long.
    assert statistics.median(waited) * 3 < statistics.median(took), (waited, took)


@contextmanager
def busy_topic(api: Api, cluster_id: str):
    """Produces to a topic steadily for as long as the block lasts."""
    producer = Producer(librdkafka_settings(api.connect(cluster_id), **{"linger.ms": 20}))
    stopping = threading.Event()

    def produce() -> None:
        while not stopping.wait(0.1):
            for _ in range(PRODUCED_PER_S // 10):
                producer.produce(TOPIC, b"x" * 100)
            producer.flush(30)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(60)


def test_live_tails_of_a_busy_topic(service, attacker, victim):
    cluster_id = attacker.create_cluster("busy")
    attacker.create_topic(cluster_id, TOPIC, partitions=1)
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    address = f"/clusters/{cluster_id}/topics/{TOPIC}/messages/stream"
    shown, skipped = [0] * TAILS, [0] * TAILS
    began = threading.Barrier(TAILS + 1)
    stopping = threading.Event()

    def watch(number: int) -> None:
        with client(service, key) as http, http.stream("GET", address) as answer:
            assert answer.status_code == 200
            kind, live = "", False
            for line in answer.iter_lines():
                if not live:
                    live = True
                    began.wait(60)
                if stopping.is_set():
                    return
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: ") and kind == "message":
                    shown[number] += 1
                elif line.startswith("data: ") and kind == "skipped":
                    skipped[number] += json.loads(line.removeprefix("data: "))["count"]

    threads = [threading.Thread(target=watch, args=[number]) for number in range(TAILS)]
    with busy_topic(attacker, cluster_id):
        opened = time.monotonic()
        for thread in threads:
            thread.start()
        began.wait(60)
        started = time.monotonic()
        wait_until(lambda: time.monotonic() - started >= TAILED_S, "the tails have gone on")
        victim.call("GET", "/clusters", status=200)
        total, ended = sum(shown), time.monotonic()
        stopping.set()
        for thread in threads:
            thread.join(60)
    # What all of them may be ahead by is a batch each.
    most = RECORDS_PER_S * (ended - opened + BURST_S) + TAILS * BATCH_RECORDS_MAX
    least = RECORDS_PER_S * (ended - started) / 4
    assert least <= total <= most, (least, total, most)
    # Every viewer sees something, and how much was passed over.
    assert all(shown), shown
    assert all(skipped), skipped


@contextmanager
def bombed_topic(api: Api, cluster_id: str, lists: int):
    """Produces records whose JSON has many lists, one in a batch, for as long as the block lasts.

    Gives the sizes of those that were produced so far.
    """
    bomb = b'{"a":[' + b"[]," * lists + b"[]]}"
    settings = {"compression.type": "gzip", "batch.num.messages": 1, "linger.ms": 0}
    producer = Producer(librdkafka_settings(api.connect(cluster_id), **settings))
    stopping = threading.Event()
    produced: list[int] = []

    def produce() -> None:
        while not stopping.wait(1 / BOMBS_PER_S):
            producer.produce(TOPIC, bomb)
            producer.flush(30)
            produced.append(len(bomb))

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield produced
    finally:
        stopping.set()
        thread.join(60)


@contextmanager
def filtering_tails(service, key: str, address: str):
    """Opens live tails with a filter; gives how many events `progress` each has shown."""
    progress = [0] * TAILS
    stopping = threading.Event()

    def watch(number: int) -> None:
        with (
            client(service, key) as http,
            http.stream("GET", address, params={"filter": FILTER}) as answer,
        ):
            assert answer.status_code == 200
            for line in answer.iter_lines():
                if stopping.is_set():
                    return
                progress[number] += line == "event: progress"

    threads = [threading.Thread(target=watch, args=[number]) for number in range(TAILS)]
    for thread in threads:
        thread.start()
    try:
        yield progress
    finally:
        stopping.set()
        for thread in threads:
            thread.join(60)


def steadily_timed(http, path: str, seconds: float) -> list[float]:
    """The seconds that each of the answers took, asked one after the other."""
    took: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        took.append(timed(http, path))
    return took


@pytest.mark.parametrize("lists", [LISTS, FEW_LISTS])
def test_filters_by_a_path_in_live_tails(service, attacker, victim, lists):
    cluster_id = attacker.create_cluster("busy")
    attacker.create_topic(cluster_id, TOPIC, partitions=1)
    own = f"/clusters/{victim.create_cluster('quiet')}/topics"
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    stream = f"/clusters/{cluster_id}/topics/{TOPIC}/messages/stream"
    quiet = steadily_timed(victim.http, own, QUIET_S)
    with (
        bombed_topic(attacker, cluster_id, lists) as produced,
        filtering_tails(service, key, stream) as progress,
    ):
        wait_until(lambda: produced, "records are produced")
        waited = steadily_timed(victim.http, own, BOMBED_S)
        bombs = len(produced)
        wait_until(lambda: all(progress), "every tail goes on")
    assert bombs > BOMBED_S, "few records were produced meanwhile"
    assert slowest(waited) < 2 * max(quiet) + LONGER_S, (max(quiet), waited)


@pytest.mark.parametrize("lists", [LISTS, FEW_LISTS])
def test_filters_by_a_path_in_pages(service, attacker, victim, lists):
    cluster_id = attacker.create_cluster("busy")
    attacker.create_topic(cluster_id, TOPIC, partitions=1)
    own = f"/clusters/{victim.create_cluster('quiet')}/topics"
    key = attacker.http.headers["Authorization"].removeprefix("Bearer ")
    page = f"/clusters/{cluster_id}/topics/{TOPIC}/messages"
    quiet = steadily_timed(victim.http, own, QUIET_S)
    with bombed_topic(attacker, cluster_id, lists) as produced:
        wait_until(lambda: len(produced) > 2 * BOMBS_PER_S, "records are produced")

    def ask(_number: int) -> int:
        with client(service, key) as http:
            return http.get(page, params={"from": "oldest", "filter": FILTER}).status_code

    with looping(PAGES, ask) as statuses:
        waited = steadily_timed(victim.http, own, BOMBED_S)
        wait_until(lambda: len(statuses) >= PAGES, "pages are read")
    assert set(statuses) == {200}
    assert slowest(waited) < 2 * max(quiet) + LONGER_S, (max(quiet), waited)
