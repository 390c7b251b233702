"""The keeper's small parts: prober, lock, metrics."""

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from brokers.etcd import MemberStatus
from console.base.runtime.clock import SteadyClock
from provisioning.cell.drivers.base import BrokerObservation, BrokerState, Endpoints
from provisioning.cell.keeper.lock import KeeperLock
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.prober import Pace, Prober
from provisioning.cell.keeper.records import ClusterPhase
from tests.metrics_page import documented, reported_metrics
from tests.provisioning.keeper.world import LIMIT_S, ROOT, until
from tests.provisioning.status.answers import answering, page, record


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


def counted(prober):
    """The connections to those brokers that gave a number."""
    return prober.reading.counted


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
                assert counted(prober) == 2
                assert dict(prober.unanswered)[0] == 0
                assert dict(prober.unanswered)[1] > 0

    asyncio.run(scenario())


def damaged_page(offset):
    return page(record(changes=[["t", 1, "t", "id"], ["p", 1, 0, 0, 200, 5, offset]]))


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
                assert damage(prober) == (("t", 0, 94, "id"),)
            # It is not forgotten when the brokers sleep, nor before those after them have answered.
            prober.look_at([])
            prober.look_at([broker(0, "c", "127.0.0.1:1")])
            await until(lambda: dict(prober.unanswered)[0] >= 2)
            assert damage(prober) == (("t", 0, 94, "id"),)
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
