"""The keeper's small parts: probe, prober, sampler, lock, metrics."""

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import orjson
import pytest

from brokers.etcd import MemberStatus
from console.base.runtime.clock import SteadyClock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, Endpoints
from provisioning.cell.keeper.lock import KeeperLock
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.probe import StatusReader, read_status
from provisioning.cell.keeper.prober import Pace, Prober
from provisioning.cell.keeper.records import ClusterPhase
from provisioning.cell.keeper.sampler import (
    BYTES_PER_S_MAX,
    CONTENT_BYTES_MAX,
    COUNTERS_EVERY_MS,
    Sampler,
    bounded_content,
)
from provisioning.cell.keeper.store import AsyncStore
from tests.metrics_page import documented, reported_metrics
from tests.provisioning.keeper.memory import MemoryStore
from tests.provisioning.keeper.world import CLUSTER, LIMIT_S, ROOT, until


def record(*, connections=0, **fields):
    """A status record of a broker as JSON."""
    head = {"v": 1, "incarnation": 7, "next": "7.0.0", "connections": [9, connections], "cpu_ms": 1}
    return orjson.dumps(head | fields)


def page(content):
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content)


@asynccontextmanager
async def answering(*answers, lasting=1):
    """A server that answers requests with these bytes, one after another, and then the last again.

    With None it does not answer. A connection ends after `lasting` requests. Yields its address,
    and a list of the requests that came.
    """
    requests = []

    async def serve(reader, writer):
        try:
            for _ in range(lasting):
                head = await reader.readuntil(b"\r\n\r\n")
                requests.append(head.split(b" ")[1].decode())
                answer = answers[min(len(requests), len(answers)) - 1]
                if answer is None:
                    await reader.read()
                    break
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()

    handlers = []
    server = await asyncio.start_server(
        lambda *streams: handlers.append(asyncio.ensure_future(serve(*streams))), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"127.0.0.1:{port}", requests
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        # The transports that were closed just now call back once more.
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (page(record(connections=3)), 3),
        (page(record()).replace(b"200 OK", b"503 No"), None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\n\r\n", None),
        (page(b"{}"), None),
        (page(b"not JSON"), None),
        (b"\r\n\r\n", None),
        (b"x" * 100_000, None),
        (b"", None),
    ],
)
def test_a_status_is_a_record_or_nothing(answer, connections):
    async def scenario():
        async with answering(answer) as (address, _):
            picture = await read_status(address, timeout_s=LIMIT_S)
            assert (picture and picture.connections) == connections

    asyncio.run(scenario())


def test_a_read_does_not_wait_for_ever():
    async def scenario():
        async with answering(None) as (address, _):
            assert await read_status(address, timeout_s=0.05) is None
        assert await read_status(address, timeout_s=LIMIT_S) is None, "nobody listens"

    asyncio.run(scenario())


def test_a_read_goes_on_where_the_last_one_ended_over_one_connection():
    """And over another one where the broker has ended the first."""
    first = page(record(next="7.4.2", more=1, changes=[["t", 1, "a"]]))
    second = page(record(next="7.4.4", changes=[["t", 2, "b"]]))

    async def scenario(lasting):
        async with answering(first, second, lasting=lasting) as (address, requests):
            reader = StatusReader(address)
            assert await reader.read(timeout_s=LIMIT_S)
            assert requests == ["/status", "/status?since=7.4.2"]
            assert reader.picture.entries("t") == {(1,): ("a",), (2,): ("b",)}
            assert await reader.read(timeout_s=LIMIT_S)
            assert requests[2:] == ["/status?since=7.4.4"]
            reader.close()

    for lasting in (1, 2, 3, 100):
        asyncio.run(scenario(lasting))


def test_a_record_that_cannot_be_used_makes_the_next_read_begin_anew():
    answers = [
        page(record(next="7.4.2", changes=[["t", 1, "a"]])),
        page(record(changes=[["t", 1, 3]])),
        page(record(anew=1, changes=[["t", 1, "b"]])),
    ]

    async def scenario():
        async with answering(*answers, lasting=100) as (address, requests):
            reader = StatusReader(address)
            read = [await reader.read(timeout_s=LIMIT_S) for _ in answers]
            assert read == [True, False, True]
            assert requests == ["/status", "/status?since=7.4.2", "/status"]
            assert reader.picture.entries("t") == {(1,): ("b",)}
            reader.close()

    asyncio.run(scenario())


def test_a_late_answer_is_not_taken_for_the_next_one():
    async def scenario():
        async with answering(None, page(record(connections=2)), lasting=100) as (address, _):
            reader = StatusReader(address)
            assert not await reader.read(timeout_s=0.05)
            assert await reader.read(timeout_s=LIMIT_S)
            assert reader.picture.connections == 2
            reader.close()

    asyncio.run(scenario())


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
        two, three = page(record(connections=2)), page(record(connections=3))
        async with probing() as (prober, _), answering(two) as (a, _), answering(three) as (b, _):
            prober.look_at([broker(0, "a", a), broker(1, "b", b)])
            await until(lambda: prober.reading is not None)
            assert connections(prober) == 5
            # Where one broker gives no number, the cluster's number is unknown.
            async with answering(page(b"{}")) as (silent, _):
                prober.look_at([broker(0, "a", a), broker(1, "c", silent)])
                assert prober.reading is None
                await until(lambda: prober.reading is not None)
                assert connections(prober) is None
                assert dict(prober.unanswered)[0] == 0
                assert dict(prober.unanswered)[1] > 0

    asyncio.run(scenario())


def damaged_page(offset):
    return page(record(changes=[["t", 1, "t"], ["p", 1, 0, 0, 200, 5, offset]]))


def damage(prober):
    """The damaged batches that the brokers knew last."""
    return prober.damaged


def test_damage_is_what_all_brokers_knew_last():
    async def scenario():
        async with probing() as (prober, _):
            # No broker runs.
            assert damage(prober) == ()
            async with answering(damaged_page(94)) as (a, _):
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
            async with answering(damaged_page(None)) as (d, _):
                prober.look_at([broker(0, "d", d)])
                await until(lambda: damage(prober) == ())

    asyncio.run(scenario())


def test_pictures_are_of_now_and_of_all_brokers_or_none():
    async def scenario():
        loading = [page(record(loading=1)), page(record())]
        async with answering(page(record())) as (a, _), answering(*loading) as (b, _):
            prober = Prober(SteadyClock(), Metrics(), Pace(LIMIT_S, LIMIT_S), lambda: None)
            prober.look_at([broker(0, "a", a), broker(1, "b", b)])
            assert await prober.pictures_now() is None, "one does not know its groups yet"
            pictures = await prober.pictures_now()
            assert pictures is not None
            assert [picture.slot for picture in pictures] == [0, 1]
            assert prober.reading is None
        assert await prober.pictures_now() is None, "none answers"
        prober.look_at([])
        await asyncio.sleep(0)

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


def sample_of(groups, topics):
    async def take():
        return {"groups": list(groups), "topics": dict(topics)}

    return take


class Sampled:
    """A sampler with a store in memory."""

    def __init__(self, take, timeout_s=LIMIT_S):
        self.store = MemoryStore()
        self.attempts = 0
        self.metrics = Metrics()
        self.clock = LaterClock()
        self.sampler = Sampler(
            CLUSTER,
            take,
            store=AsyncStore(self.store, self.metrics),
            clock=self.clock,
            metrics=self.metrics,
            timeout_s=timeout_s,
            done=self._count,
        )

    def _count(self):
        self.attempts += 1

    async def attempt(self, *, last=False):
        due = self.attempts + 1
        self.sampler.start(last=last)
        await until(lambda: self.attempts == due)

    @property
    def stored(self):
        return self.store.samples.get(CLUSTER)


def test_a_sample_is_written_when_it_changed_or_is_the_last():
    groups = [{"group": "a"}]
    sampled = Sampled(sample_of(groups, {}))

    async def scenario():
        await sampled.attempt()
        first = sampled.stored
        assert first[1] == {"groups": [{"group": "a"}], "topics": {}}
        sampled.clock.passed_ms += 1_000
        await sampled.attempt()
        assert sampled.stored is first
        groups.append({"group": "b"})
        await sampled.attempt()
        second = sampled.stored
        assert second[1]["groups"] == groups
        await sampled.attempt(last=True)
        assert sampled.stored is not second
        assert sampled.stored[1] == second[1]

    asyncio.run(scenario())


def test_samples_that_change_all_the_time_are_written_at_a_rate():
    groups = [{"group": "x" * 10 * BYTES_PER_S_MAX}]
    sampled = Sampled(sample_of(groups, {}))

    async def scenario():
        await sampled.attempt()
        first = sampled.stored
        groups.append({"group": "b"})
        sampled.clock.passed_ms += 9_000
        await sampled.attempt()
        assert sampled.stored is first
        sampled.clock.passed_ms += 2_000
        await sampled.attempt()
        assert sampled.stored[1]["groups"] == groups

    asyncio.run(scenario())


def test_counters_alone_are_written_now_and_then():
    topics = {"orders": [1, 2, 3]}
    sampled = Sampled(sample_of([{"group": "a"}], topics))

    async def scenario():
        await sampled.attempt()
        first = sampled.stored
        assert first[1]["topics"] == {"orders": [1, 2, 3]}
        topics["orders"] = [4, 5, 6]
        sampled.clock.passed_ms = COUNTERS_EVERY_MS // 2
        await sampled.attempt()
        assert sampled.stored is first
        sampled.clock.passed_ms = COUNTERS_EVERY_MS
        await sampled.attempt()
        second = sampled.stored
        assert second[1]["topics"] == {"orders": [4, 5, 6]}
        # It is not written again where nothing changed, however long ago the last one was.
        sampled.clock.passed_ms *= 2
        await sampled.attempt()
        assert sampled.stored is second

    asyncio.run(scenario())


def test_a_sample_that_fails_is_an_attempt():
    async def refuse():
        raise RuntimeError

    async def know_nothing():
        return None

    async def hang():
        await asyncio.Event().wait()

    async def scenario():
        for take, timeout_s in ((refuse, LIMIT_S), (know_nothing, LIMIT_S), (hang, 0.05)):
            sampled = Sampled(take, timeout_s)
            before = sampled.sampler.attempted_ms
            await sampled.attempt()
            assert sampled.sampler.attempted_ms > before
            assert sampled.stored is None
        sampled = Sampled(sample_of([], {}))
        sampled.store.fail("locked")
        await sampled.attempt()
        sampled.store.fail(None)
        await sampled.attempt()
        assert sampled.stored

    asyncio.run(scenario())


def test_a_large_sample_keeps_what_fits():
    groups = [{"group": f"{n}", "members": ["x" * 1000]} for n in range(1000)]
    content = bounded_content({"groups": groups, "topics": {}})
    kept = content["groups"]
    assert isinstance(kept, list)
    assert content["truncated"] is True
    assert kept == groups[: len(kept)]
    assert CONTENT_BYTES_MAX * 0.9 < len(orjson.dumps(kept)) <= CONTENT_BYTES_MAX
    topics = {f"topic-{n:05}": [n, n, n] for n in range(30_000)}
    content = bounded_content({"groups": groups, "topics": topics})
    assert len(orjson.dumps(content)) <= CONTENT_BYTES_MAX
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
        "import sys, provisioning.cell.keeper.__main__\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'django', 'psycopg', 'celery',"
        " 'confluent_kafka'}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_the_documented_metrics_are_those_of_the_keeper():
    assert reported_metrics(Metrics().render()) == documented("Keeper")
