"""The keeper with real brokers: it wakes, sleeps and replaces, also while other parts fail."""

import asyncio
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from provisioning.cell.drivers.base import BrokerState
from provisioning.cell.drivers.process import identify_process
from provisioning.cell.keeper import prober
from provisioning.cell.keeper.records import ClusterPhase, SpecState
from provisioning.cell.status.reader import read_status
from tests.provisioning.driver_conformance import LossyDriver
from tests.provisioning.keeper.world import CLUSTER, LIMIT_S, World, kill, until
from tests.provisioning.keeper.written import newest_written
from tests.provisioning.survivors import kill_survivors


@pytest.fixture
def world(tmp_path):
    yield World(tmp_path, stop_brokers_on_exit=True)
    kill_survivors(tmp_path / "keeper/run")


def alive(pid):
    return identify_process(pid) is not None


def test_a_wake_request_starts_a_cluster_that_never_ran(world):
    async def scenario():
        async with world.keeping():
            world.want()
            await world.until_phase(ClusterPhase.ASLEEP)
            assert list((world.folder / "keeper/run").iterdir()) == []
            world.wake()
            broker = await world.running()
            picture = await read_status(broker.metrics, timeout_s=LIMIT_S)
            assert picture is not None
            assert picture.connections == 0
            await until(lambda: world.store.peek_wake(CLUSTER) is None)
            assert world.phases() == [
                ClusterPhase.ASLEEP,
                ClusterPhase.STARTING,
                ClusterPhase.RUNNING,
            ]
            assert world.status().started_for == "test"
            log = world.folder / f"keeper/run/{CLUSTER}/slot-0/broker.log"
            assert 'started_for="test"' in log.read_text()
        assert world.status().phase is ClusterPhase.ASLEEP
        assert world.status().started_for == ""
        assert world.status().brokers == ()
        assert not alive(broker.pid)

    asyncio.run(scenario())


def test_an_idle_cluster_sleeps_and_wakes_again(world):
    async def scenario():
        async with world.keeping():
            world.want(idle_timeout_ms=200)
            world.wake()
            broker = await world.running()
            await world.until_phase(ClusterPhase.ASLEEP)
            assert not alive(broker.pid)
            assert world.phases()[-3:] == [
                ClusterPhase.RUNNING,
                ClusterPhase.STOPPING,
                ClusterPhase.ASLEEP,
            ]
            world.wake()
            again = await world.running(other_than=broker.pid)
            assert again.pid != broker.pid

    asyncio.run(scenario())


def test_a_client_keeps_it_awake(world):
    async def scenario():
        async with world.keeping():
            world.want(idle_timeout_ms=200)
            world.wake()
            broker = await world.running()
            client = await world.client(broker)
            await world.until(lambda status: status.connections == 1)
            # It still runs after several samples, which measure the time here.
            taken = world.sampled
            await until(lambda: world.sampled >= taken + 5)
            assert world.status().phase is ClusterPhase.RUNNING
            assert world.status().brokers == (broker,)
            await client.close()
            await world.until_phase(ClusterPhase.ASLEEP)

    world.loop["connections_interval_ms"] = 1
    asyncio.run(scenario())


def test_a_sample_is_taken_while_it_runs_and_before_it_sleeps(world):
    async def scenario():
        async with world.keeping():
            world.want(idle_timeout_ms=300)
            world.wake()
            await world.running()
            running = world.status()
            status = await world.until_phase(ClusterPhase.ASLEEP)
        assert world.sampled >= 2
        sample = newest_written(world.folder / "bucket", CLUSTER)
        assert sample is not None
        assert sample.content == {"groups": [], "topics": {}, "connections": 0}
        # The last one is written although nothing had changed since the first.
        assert running.since_ms + 300 <= sample.taken_at_ms <= status.since_ms

    asyncio.run(scenario())


def test_a_killed_broker_is_replaced(world):
    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            first = await world.running()
            kill(first.pid)
            second = await world.running(other_than=first.pid)
            status = await world.until_phase(ClusterPhase.RUNNING)
            assert status.restarts == 1
            kill(second.pid)
            await world.running(other_than=second.pid)
            assert world.status().restarts == 2

    asyncio.run(scenario())


def test_a_broker_that_does_not_answer_is_replaced(world):
    world.loop |= {"unanswered_max": 3, "scrape_timeout_ms": 50}

    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            first = await world.running()
            kill(first.pid, signal.SIGSTOP)
            await world.running(other_than=first.pid)
            assert not alive(first.pid)

    asyncio.run(scenario())


def test_a_suspended_cluster_stops_and_does_not_wake(world):
    async def scenario():
        async with world.keeping():
            spec = world.want()
            world.wake()
            broker = await world.running()
            client = await world.client(broker)
            world.store.put_spec(replace(spec, generation=2, state=SpecState.SUSPENDED))
            status = await world.until_phase(ClusterPhase.ASLEEP)
            assert status.message == "suspended"
            assert status.observed_generation == 2
            assert not alive(broker.pid)
            await client.close()
            world.wake()
            await until(lambda: world.store.peek_wake(CLUSTER) is None)
            assert world.status().phase is ClusterPhase.ASLEEP
            world.store.put_spec(replace(spec, generation=3))
            world.wake()
            await world.running()

    asyncio.run(scenario())


def test_a_deleted_cluster_leaves_nothing_and_is_forgotten(world):
    async def scenario():
        async with world.keeping() as keeper:
            spec = world.want()
            world.wake()
            broker = await world.running()
            run = world.folder / "keeper/run" / CLUSTER
            assert run.exists()
            world.store.put_spec(replace(spec, generation=2, state=SpecState.DELETED))
            await world.until_phase(ClusterPhase.ASLEEP)
            assert not alive(broker.pid)
            # It can be restored: the driver removes it only once its records are purged.
            assert run.exists()
            world.store.purge(CLUSTER)
            await until(lambda: not run.exists())
            await until(lambda: CLUSTER not in world.store.removals)
            world.want("cl_other")
            await world.until_phase(ClusterPhase.ASLEEP, "cl_other")
            await until(lambda: keeper.phases().total() == 1)

    asyncio.run(scenario())


def test_a_cluster_without_spec_and_removal_is_stopped_and_stays(world):
    """As where the metadata was restored from a backup that is older than the cluster."""

    async def scenario():
        async with world.keeping() as keeper:
            world.want()
            world.wake()
            broker = await world.running()
            world.store.remove_spec(CLUSTER)
            await until(lambda: not alive(broker.pid))
            await until(
                lambda: world.store.last_health and world.store.last_health.orphans == (CLUSTER,)
            )
            run = world.folder / "keeper/run" / CLUSTER
            assert run.exists()
            world.store.purge(CLUSTER)
            # The `Removal` is not watched, so a watched change makes the keeper look for it.
            world.want("cl_other")
            await until(lambda: not run.exists())
            world.want("cl_third")
            await until(lambda: CLUSTER not in keeper.cluster_ids())

    asyncio.run(scenario())


def test_damage_that_brokers_know_of_is_reported_also_while_they_sleep(world, monkeypatch):
    monkeypatch.setattr(prober, "damaged_in", lambda pictures: (("t", 0, 94, "id"),))

    async def scenario():
        async with world.keeping():
            world.want()
            await world.until_phase(ClusterPhase.ASLEEP)
            await until(lambda: world.store.last_health is not None)
            assert world.store.last_health.damaged == ()
            world.wake()
            await world.running()
            reported = ((CLUSTER, "t", 0, 94),)
            await until(lambda: world.store.last_health.damaged == reported)
            assert world.store.last_health.damaged_topics == ("id",)
            assert world.store.last_health.damage_unknown == ()
            world.want(generation=2, idle_timeout_ms=1)
            await world.until_phase(ClusterPhase.ASLEEP)
            assert world.store.last_health.damaged == reported

    asyncio.run(scenario())


def test_brokers_are_replaced_while_the_metadata_store_fails(world):
    async def scenario():
        async with world.keeping() as keeper:
            world.want()
            world.wake()
            first = await world.running()
            world.store.fail("locked")
            await until(lambda: keeper.unwell() is not None)
            kill(first.pid)
            await until(lambda: keeper.broker_pids(CLUSTER) not in ([], [first.pid]))
            assert world.status().brokers[0].pid == first.pid, "nothing could be written"
            world.store.fail(None)
            second = await world.running(other_than=first.pid)
            assert [second.pid] == keeper.broker_pids(CLUSTER)
            await until(lambda: keeper.unwell() is None)

    asyncio.run(scenario())


def test_an_idle_cluster_does_not_sleep_while_nobody_could_wake_it(world):
    async def scenario():
        async with world.keeping() as keeper:
            world.want(idle_timeout_ms=300)
            world.wake()
            broker = await world.running()
            world.store.fail("locked")
            await until(lambda: keeper.unwell() is not None)
            taken = world.sampled
            await until(lambda: world.sampled >= taken + 10)
            assert alive(broker.pid)
            world.store.fail(None)
            await world.until_phase(ClusterPhase.ASLEEP)
            assert not alive(broker.pid)

    asyncio.run(scenario())


def test_a_keeper_that_starts_while_the_store_fails_waits_for_it(world):
    world.store.fail("disk I/O error")

    async def scenario():
        async with world.keeping() as keeper:
            world.want()
            world.wake()
            await until(lambda: keeper.unwell() is not None)
            world.store.fail(None)
            await world.running()

    asyncio.run(scenario())


def test_the_next_keeper_takes_brokers_over(world):
    world.loop["stop_brokers_on_exit"] = False

    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            first = await world.running()
        assert alive(first.pid)
        async with world.keeping() as keeper:
            await until(lambda: keeper.broker_pids(CLUSTER) == [first.pid])
            await until(lambda: keeper.broker_states() == {BrokerState.RUNNING: 1})
            assert await read_status(first.metrics, timeout_s=LIMIT_S)
            kill(first.pid)
            second = await world.running(other_than=first.pid)
        # The broker is killed while no keeper runs.
        kill(second.pid)
        await until(lambda: not alive(second.pid))
        world.loop["stop_brokers_on_exit"] = True
        async with world.keeping():
            await world.running(other_than=second.pid)

    asyncio.run(scenario())


def test_refused_settings_make_it_failed_with_a_message(world):
    world.broker = {**world.broker, "threads": {"runtime": -1}}

    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            status = await world.until_phase(ClusterPhase.FAILED)
            assert "threads.runtime" in status.message
            await until(lambda: world.store.peek_wake(CLUSTER) is None)
        world.broker = {**world.broker, "threads": {"runtime": 1}}
        world.loop["retry_failed_ms"] = 1
        async with world.keeping():
            world.wake()
            await world.running()

    asyncio.run(scenario())


def test_lost_replies_of_the_driver_cost_nothing(world):
    lossy: list[LossyDriver] = []

    def wrap(driver):
        lossy.append(LossyDriver(driver, done=len(lossy) == 0))
        return lossy[-1]

    world.wrap = wrap

    async def scenario():
        for _ in range(2):
            async with world.keeping():
                world.want(idle_timeout_ms=200)
                world.wake()
                await world.running()
                await world.until_phase(ClusterPhase.ASLEEP)
        assert [driver.lost for driver in lossy] == [2, 2]

    asyncio.run(scenario())


def test_a_cluster_that_hangs_delays_no_other(world):
    """One cluster's broker neither stops nor answers."""
    world.loop |= {"sample_timeout_ms": 200, "stop_timeout_ms": 500}

    async def scenario():
        async with world.keeping():
            world.want("cl_slow")
            world.wake("cl_slow")
            slow = await world.running("cl_slow")
            kill(slow.pid, signal.SIGSTOP)
            world.want("cl_slow", generation=2, state=SpecState.SUSPENDED)
            await world.until_phase(ClusterPhase.STOPPING, "cl_slow")
            world.want("cl_quick", idle_timeout_ms=300)
            world.wake("cl_quick")
            quick = await world.running("cl_quick")
            kill(quick.pid)
            await world.running("cl_quick", other_than=quick.pid)
            await world.until_phase(ClusterPhase.ASLEEP, "cl_quick")
            assert world.status("cl_slow").phase is ClusterPhase.STOPPING
            assert alive(slow.pid)
        await until(lambda: not alive(slow.pid))

    asyncio.run(scenario())


def test_a_status_is_written_only_when_it_changed(world):
    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            await world.running()
            taken = world.sampled
            await until(lambda: world.sampled >= taken + 5)
            written = [status for _, status in world.store.writes]
            assert all(a != b for a, b in pairwise(written))
            assert len(written) <= 4

    asyncio.run(scenario())


def test_secrets_of_brokers_are_private(world, monkeypatch):
    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            broker = await world.running()
            folder = world.folder / "keeper/run" / CLUSTER / "slot-0"
            assert folder.stat().st_mode & 0o077 == 0
            for path in folder.iterdir():
                assert path.stat().st_mode & 0o077 == 0, path
            text = (folder / "broker.toml").read_text()
            assert world.secret.hex() not in text
            environment = Path(f"/proc/{broker.pid}/environ").read_bytes()
            assert b"PATH=" in environment
            assert b"FRESHET_SECRET_KEY" not in environment

    monkeypatch.setenv("FRESHET_SECRET_KEY", "not for brokers")
    asyncio.run(scenario())
