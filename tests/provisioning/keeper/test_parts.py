"""The keeper's small parts: probe, prober, sampler, lock, metrics."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import pytest

from brokers.etcd import MemberStatus
from console.base.runtime.clock import SteadyClock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, Endpoints
from provisioning.cell.keeper.lock import KeeperLock
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.probe import connections_in, damaged_in, scrape_metrics, topics_in
from provisioning.cell.keeper.prober import Pace, Prober
from provisioning.cell.keeper.records import ClusterPhase
from provisioning.cell.keeper.sampler import (
    CONTENT_BYTES_MAX,
    COUNTERS_EVERY_MS,
    Sampler,
    bounded_content,
)
from provisioning.cell.keeper.store import AsyncStore
from tests.metrics_page import documented, reported_metrics
from tests.provisioning.keeper.memory import MemoryStore
from tests.provisioning.keeper.world import CLUSTER, LIMIT_S, ROOT, until


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("freshet_client_connections 0\n", 0),
        ("# HELP freshet_client_connections Clients\nfreshet_client_connections 7\n", 7),
        ("x 1\nfreshet_client_connections 1e3 1700000000\ny 2", 1000),
        ("freshet_client_connections_total 9\n", None),
        ('freshet_client_connections{a="b"} 9\n', None),
        ("freshet_client_connections \n", None),
        ("freshet_client_connections many\n", None),
        ("freshet_client_connections NaN\n", None),
        ("freshet_client_connections -1\n", None),
        ("", None),
    ],
)
def test_connections_are_what_the_metric_says(text, count):
    assert connections_in(text.encode()) == count


IN = "kafka_server_brokertopicmetrics_bytesin_total"
OUT = "kafka_server_brokertopicmetrics_bytesout_total"
RECORDS = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.mark.parametrize(
    ("pages", "topics"),
    [
        ([], {}),
        ([""], {}),
        ([f"# HELP {IN} x\n{IN} 3\n"], {}),
        ([f'{IN}{{topic="a.b-c_d"}} 5\n'], {"a.b-c_d": [5, 0, 0]}),
        ([f'{IN}{{topic="a"}} 5 1700000000\n'], {"a": [5, 0, 0]}),
        (
            [f'{IN}{{topic="a"}} 1\n{OUT}{{topic="a"}} 2\n{RECORDS}{{topic="a"}} 3'],
            {"a": [1, 2, 3]},
        ),
        # The sum over two brokers.
        ([f'{IN}{{topic="a"}} 1\n', f'{IN}{{topic="a"}} 2\n'], {"a": [3, 0, 0]}),
        ([f'{IN}{{topic="a"}} many\n{IN}{{topic="a"}} -1\n{IN}{{topic="a"}} NaN\n'], {}),
        (['kafka_server_brokertopicmetrics_other_total{topic="a"} 1\n'], {}),
    ],
)
def test_topics_are_what_the_metrics_say(pages, topics):
    assert topics_in(page.encode() for page in pages) == topics


DAMAGED = "freshet_damaged_batch_first_offset"


@pytest.mark.parametrize(
    ("pages", "damaged"),
    [
        ([], ()),
        (
            [f'# TYPE {DAMAGED} gauge\n{DAMAGED}{{topic="a.b-c_d",partition="10"}} 94\n'],
            (("a.b-c_d", 10, 94),),
        ),
        (
            [f'{DAMAGED}{{topic="a",partition="1"}} 7.0\n{DAMAGED}{{topic="a",partition="0"}} 0\n'],
            (("a", 0, 0), ("a", 1, 7)),
        ),
        # Two brokers know of another one each.
        (
            [
                f'{DAMAGED}{{topic="a",partition="0"}} 9\n',
                f'{DAMAGED}{{topic="a",partition="0"}} 4\n',
            ],
            (("a", 0, 4),),
        ),
        ([f'{DAMAGED}{{topic="a",partition="0"}} NaN\n{DAMAGED} 3\n'], ()),
    ],
)
def test_damaged_batches_are_what_the_metrics_say(pages, damaged):
    assert damaged_in(page.encode() for page in pages) == damaged


@asynccontextmanager
async def answering(answer):
    """A server that answers every request with these bytes; with None it never answers."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()
        await writer.wait_closed()

    handlers = []
    server = await asyncio.start_server(
        lambda *streams: handlers.append(asyncio.ensure_future(serve(*streams))), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.close()
        await asyncio.gather(*handlers, return_exceptions=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 503 No\r\ncontent-length: 3\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n", None),
        (b"\r\n\r\n", None),
        (b"x" * 100_000, None),
        (b"", None),
    ],
)
def test_a_scrape_gives_the_page_or_nothing(answer, expected):
    async def scenario():
        async with answering(answer) as address:
            assert await scrape_metrics(address, timeout_s=LIMIT_S) == expected

    asyncio.run(scenario())


def test_a_scrape_does_not_wait_for_ever():
    async def scenario():
        async with answering(None) as address:
            assert await scrape_metrics(address, timeout_s=0.05) is None
        assert await scrape_metrics(address, timeout_s=LIMIT_S) is None, "nobody listens"

    asyncio.run(scenario())


def page(count):
    body = f"freshet_client_connections {count}\n".encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def broker(slot, name, metrics):
    state = BrokerState.RUNNING
    return BrokerObservation(slot, state, name=name, endpoints=Endpoints("k", metrics, "l"))


@asynccontextmanager
async def probing():
    rounds = []
    prober = Prober(
        SteadyClock(), Metrics(), Pace(0.01, LIMIT_S), lambda: rounds.append(prober.reading)
    )
    task = asyncio.create_task(prober.run())
    try:
        yield prober, rounds
    finally:
        task.cancel()
        await asyncio.wait({task})


def connections(prober):
    """The connections of the last reading."""
    return prober.reading.connections


def test_connections_of_all_brokers_count():
    async def scenario():
        async with probing() as (prober, _), answering(page(2)) as a, answering(page(3)) as b:
            prober.look_at([broker(0, "a", a), broker(1, "b", b)])
            await until(lambda: prober.reading is not None)
            assert connections(prober) == 5
            # Where one broker gives no number, the cluster's number is unknown.
            async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as silent:
                prober.look_at([broker(0, "a", a), broker(1, "c", silent)])
                assert prober.reading is None
                await until(lambda: prober.reading is not None)
                assert connections(prober) is None
                assert prober.unanswered == ((0, 0), (1, 0))

    asyncio.run(scenario())


def damaged_page(offset):
    series = "" if offset is None else f'{DAMAGED}{{topic="t",partition="0"}} {offset}\n'
    body = f"freshet_client_connections 0\n{series}".encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def damage(prober):
    """The damaged batches that the brokers knew last."""
    return prober.damaged


def test_damage_is_what_all_brokers_knew_last():
    async def scenario():
        async with probing() as (prober, _):
            # No broker runs.
            assert damage(prober) == ()
            async with answering(damaged_page(94)) as a:
                prober.look_at([broker(0, "a", a), broker(1, "b", "127.0.0.1:1")])
                assert damage(prober) is None
                await until(lambda: dict(prober.unanswered)[1] >= 2)
                assert damage(prober) is None
                prober.look_at([broker(0, "a", a)])
                await until(lambda: damage(prober) is not None)
                assert damage(prober) == (("t", 0, 94),)
            # It is not forgotten when the brokers sleep, nor before those after them have answered.
            prober.look_at([])
            prober.look_at([broker(0, "c", "127.0.0.1:1")])
            await until(lambda: dict(prober.unanswered)[0] >= 2)
            assert damage(prober) == (("t", 0, 94),)
            async with answering(damaged_page(None)) as d:
                prober.look_at([broker(0, "d", d)])
                await until(lambda: damage(prober) == ())

    asyncio.run(scenario())


def test_pages_are_of_now_or_of_the_last_round_of_all():
    async def scenario():
        async with answering(page(2)) as a, answering(page(3)) as b:
            prober = Prober(SteadyClock(), Metrics(), Pace(LIMIT_S, LIMIT_S), lambda: None)
            prober.look_at([broker(0, "a", a), broker(1, "b", b)])
            first = await prober.pages_now()
            assert [connections_in(answer) for answer in first] == [2, 3]
            assert prober.reading is None
            task = asyncio.create_task(prober.run())
            await until(lambda: prober.reading is not None)
            task.cancel()
        assert await prober.pages_now() == prober.pages == first

    asyncio.run(scenario())


def test_a_broker_that_does_not_answer_is_counted_by_its_name():
    async def scenario():
        async with probing() as (prober, _):
            prober.look_at([broker(0, "a", "127.0.0.1:1")])
            await until(lambda: dict(prober.unanswered)[0] >= 3)
            prober.look_at([broker(0, "a", "127.0.0.1:1")])
            assert dict(prober.unanswered)[0] >= 3
            prober.look_at([broker(0, "b", "127.0.0.1:1")])
            assert dict(prober.unanswered)[0] == 0
            await until(lambda: dict(prober.unanswered)[0] >= 2)
            prober.forget(0)
            assert dict(prober.unanswered)[0] == 0

    asyncio.run(scenario())


class LaterClock(SteadyClock):
    """A clock that a test sets."""

    def __init__(self):
        super().__init__()
        self.passed_ms = 0

    def now_ms(self):
        return super().now_ms() + self.passed_ms


class Sampled:
    """A sampler with a store in memory."""

    def __init__(self, take, timeout_s=LIMIT_S, topics=dict, turns=None):
        async def count():
            return topics()

        self.store = MemoryStore()
        self.attempts = 0
        self.metrics = Metrics()
        self.clock = LaterClock()
        self.sampler = Sampler(
            CLUSTER,
            take,
            topics=count,
            store=AsyncStore(self.store, self.metrics),
            clock=self.clock,
            metrics=self.metrics,
            timeout_s=timeout_s,
            turns=turns or asyncio.Semaphore(1),
            done=self._count,
        )

    def _count(self):
        self.attempts += 1

    async def attempt(self, *, last=False):
        due = self.attempts + 1
        self.sampler.start("127.0.0.1:1", last=last)
        await until(lambda: self.attempts == due)


def test_a_sample_is_written_when_it_changed():
    groups = [{"group": "a"}]
    sampled = Sampled(lambda _: list(groups))

    async def scenario():
        await sampled.attempt()
        first = sampled.store.samples[CLUSTER]
        assert first[1] == {"groups": [{"group": "a"}], "topics": {}}
        await sampled.attempt()
        assert sampled.store.samples[CLUSTER] is first
        groups.append({"group": "b"})
        await sampled.attempt()
        assert sampled.store.samples[CLUSTER][1]["groups"] == groups

    asyncio.run(scenario())


def test_samples_of_many_clusters_wait_for_their_turn():
    """And the wait does not count towards the time limit of a sample."""

    async def scenario():
        turns = asyncio.Semaphore(1)
        sampled = Sampled(lambda _: [], turns=turns, timeout_s=LIMIT_S)
        await turns.acquire()
        sampled.sampler.start("127.0.0.1:1")
        sampled.clock.passed_ms += 60_000
        await asyncio.sleep(0)
        assert sampled.attempts == 0
        assert CLUSTER not in sampled.store.samples
        turns.release()
        await until(lambda: sampled.attempts == 1)
        assert CLUSTER in sampled.store.samples
        assert sampled.sampler.next_ms - sampled.clock.now_ms() < 60_000

    asyncio.run(scenario())


def test_counters_alone_are_written_now_and_then():
    groups, topics = [{"group": "a"}], {"orders": [1, 2, 3]}
    sampled = Sampled(lambda _: list(groups), topics=lambda: dict(topics))

    async def scenario():
        await sampled.attempt()
        first = sampled.store.samples[CLUSTER]
        assert first[1]["topics"] == {"orders": [1, 2, 3]}
        topics["orders"] = [4, 5, 6]
        await sampled.attempt()
        assert sampled.store.samples[CLUSTER] is first
        await sampled.attempt(last=True)
        first = sampled.store.samples[CLUSTER]
        assert first[1]["topics"] == {"orders": [4, 5, 6]}
        topics["orders"] = [7, 8, 9]
        await sampled.attempt()
        assert sampled.store.samples[CLUSTER] is first
        sampled.clock.passed_ms = COUNTERS_EVERY_MS
        await sampled.attempt()
        second = sampled.store.samples[CLUSTER]
        assert second[1]["topics"] == {"orders": [7, 8, 9]}
        # It is not written again where nothing changed, however long ago the last one was.
        sampled.clock.passed_ms *= 2
        await sampled.attempt()
        assert sampled.store.samples[CLUSTER] is second

    asyncio.run(scenario())


def test_a_sample_that_fails_is_an_attempt():
    def refuse(_):
        raise RuntimeError

    async def scenario():
        sampled = Sampled(refuse)
        before = sampled.sampler.attempted_ms
        await sampled.attempt()
        assert sampled.sampler.attempted_ms > before
        assert sampled.store.samples == {}
        sampled = Sampled(lambda _: [])
        sampled.store.fail("locked")
        await sampled.attempt()
        sampled.store.fail(None)
        await sampled.attempt()
        assert CLUSTER in sampled.store.samples

    asyncio.run(scenario())


def test_samples_are_taken_one_at_a_time_and_not_for_long():
    release, taken = threading.Event(), []

    def hang(_):
        taken.append(threading.current_thread())
        release.wait(LIMIT_S)
        return []

    async def scenario():
        sampled = Sampled(hang, timeout_s=0.05)
        for _ in range(3):
            await sampled.attempt()
        assert len(taken) == 1, "the first one hangs still"
        release.set()
        await until(lambda: not taken[0].is_alive())
        await sampled.attempt()
        assert len(taken) == 2

    asyncio.run(scenario())


def test_a_large_sample_keeps_what_fits():
    groups = [{"group": f"{n}", "members": ["x" * 1000]} for n in range(1000)]
    content = bounded_content({"groups": groups, "topics": {}})
    kept = content["groups"]
    assert isinstance(kept, list)
    assert content["truncated"] is True
    assert kept == groups[: len(kept)]
    assert CONTENT_BYTES_MAX * 0.9 < len(str(kept)) <= CONTENT_BYTES_MAX
    topics = {f"topic-{n:05}": [n, n, n] for n in range(30_000)}
    content = bounded_content({"groups": groups, "topics": topics})
    assert len(json.dumps(content)) <= CONTENT_BYTES_MAX
    some = content["topics"]
    assert isinstance(some, dict)
    assert list(some) == sorted(topics)[: len(some)]
    assert content["groups"]
    assert len(some) > 1000
    small = {"groups": groups[:2], "topics": {}}
    assert bounded_content(small) is small


def test_a_lock_has_one_holder_and_ends_with_it(tmp_path):
    path = tmp_path / "keeper.lock"
    first, second = KeeperLock(path), KeeperLock(path)
    assert first.try_acquire("noon") is None
    holder = second.try_acquire("later")
    assert holder is not None
    assert holder.description == f"another keeper (pid {os.getpid()}, since noon)"
    first.release()
    assert second.try_acquire("later") is None
    second.release()
    assert path.stat().st_mode & 0o077 == 0


def test_a_lock_is_not_inherited(tmp_path):
    lock = KeeperLock(tmp_path / "keeper.lock")
    assert lock.try_acquire("noon") is None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        other = KeeperLock(tmp_path / "keeper.lock")
        assert other.try_acquire("later") is None, "a child outlives its keeper"
        other.release()
        child.communicate(b"\n", LIMIT_S)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_holder_that_wrote_nothing_is_another_keeper(tmp_path, text):
    path = tmp_path / "keeper.lock"
    lock = KeeperLock(path)
    assert lock.try_acquire("noon") is None
    path.write_text(text)
    holder = KeeperLock(path).try_acquire("later")
    assert holder is not None
    assert holder.description == "another keeper"
    lock.release()


def test_metrics_are_counted_and_rendered():
    metrics = Metrics()
    metrics.count("wakes")
    metrics.woke(0.15)
    metrics.woke(0.25)
    metrics.woke(99.0)
    metrics.leading = True
    metrics.etcd = MemberStatus(file_bytes=7, in_use_bytes=5, quota_bytes=0)
    metrics.phases = lambda: {ClusterPhase.RUNNING: 3}
    metrics.brokers = lambda: {BrokerState.WAITING: 2}
    lines = metrics.render().splitlines()
    assert 'freshet_keeper_brokers{state="waiting"} 2.0' in lines
    assert 'freshet_keeper_brokers{state="running"} 0.0' in lines
    for line in (
        "freshet_keeper_leading 1.0",
        'freshet_keeper_clusters{phase="running"} 3.0',
        'freshet_keeper_clusters{phase="asleep"} 0.0',
        "freshet_keeper_wakes_total 1.0",
        "freshet_keeper_restarts_total 0.0",
        'freshet_keeper_wake_seconds_bucket{le="0.1"} 0.0',
        'freshet_keeper_wake_seconds_bucket{le="0.2"} 1.0',
        'freshet_keeper_wake_seconds_bucket{le="0.3"} 2.0',
        'freshet_keeper_wake_seconds_bucket{le="30.0"} 2.0',
        'freshet_keeper_wake_seconds_bucket{le="+Inf"} 3.0',
        "freshet_keeper_wake_seconds_sum 99.4",
        "freshet_keeper_wake_seconds_count 3.0",
        "freshet_keeper_etcd_file_bytes 7.0",
        "freshet_keeper_etcd_in_use_bytes 5.0",
    ):
        assert line in lines
    # Without a quota the metric has no value.
    assert not any(line.startswith("freshet_keeper_etcd_quota_bytes") for line in lines)
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")} <= (
        named | {f"freshet_keeper_wake_seconds_{part}" for part in ("bucket", "sum", "count")}
    )


def test_the_keeper_needs_neither_django_nor_postgresql():
    code = (
        "import sys, provisioning.cell.keeper.__main__, provisioning.cell.keeper.groups\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'django', 'psycopg', 'celery',"
        " 'confluent_kafka'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_the_documented_metrics_are_those_of_the_keeper():
    assert reported_metrics(Metrics().render()) == documented("Keeper")
