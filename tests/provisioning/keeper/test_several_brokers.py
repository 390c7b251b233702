"""The keeper with clusters of three real brokers, some of which end, hang, or are too many."""

import asyncio
import signal
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.metadata import CellStore
from provisioning.cell.drivers.base import Answer, Outcome
from provisioning.cell.drivers.process import identify_process
from provisioning.cell.keeper.records import ClusterPhase
from tests.provisioning.keeper.world import CLUSTER, World, kill, until
from tests.provisioning.keeper.written import newest_written
from tests.provisioning.survivors import kill_survivors

TIMEOUT_S = 60
PARTITIONS = 6
RECORDS = 30


class SeveralWorld(World):
    """A cell whose cluster has three brokers."""

    def scale(self, scale, **changes):
        """Writes how many brokers the cluster has, as the control plane does."""
        metadata = CellStore(str(self.folder / "metadata.sqlite")).cluster(CLUSTER)
        metadata.create(scale=scale)
        metadata.set_scale(scale)
        return self.want(scale=scale, **changes)

    async def all_serve(self, scale):
        """Waits until this many brokers serve, and no others: slot → pid."""
        status = await self.until(
            lambda status: status is not None and len(status.brokers) == scale
        )
        return {broker.slot: broker.pid for broker in status.brokers}

    async def slot_replaced(self, slot, pid):
        """Waits until another process serves a slot: slot → pid of all."""

        def is_replaced(status):
            return slot in (pids := pids_of(status)) and pids[slot] != pid

        return pids_of(await self.until(is_replaced))


def pids_of(status):
    return {broker.slot: broker.pid for broker in status.brokers}


def alive(pid):
    return identify_process(pid) is not None


@pytest.fixture
def world(tmp_path):
    yield SeveralWorld(tmp_path, stop_brokers_on_exit=True)
    kill_survivors(tmp_path / "keeper/run")


def test_a_broker_that_ends_or_hangs_is_replaced_and_the_cluster_runs_on(world):
    world.loop |= {"unanswered_max": 3, "scrape_timeout_ms": 200}

    async def scenario():
        async with world.keeping():
            world.scale(3)
            world.wake()
            first = await world.all_serve(3)
            restarts = world.status().restarts
            kill(first[1])
            second = await world.slot_replaced(1, first[1])
            assert {**first, 1: second[1]} == await world.all_serve(3)
            assert world.status().restarts == restarts + 1
            kill(first[2], signal.SIGSTOP)
            third = await world.slot_replaced(2, first[2])
            assert third == {**second, 2: third[2]}
            assert not alive(first[2])
            assert world.phases()[-2:] == [ClusterPhase.STARTING, ClusterPhase.RUNNING]
            assert world.phases().count(ClusterPhase.STARTING) == 1

    asyncio.run(scenario())


def test_a_smaller_scale_stops_the_highest_slots_and_a_larger_one_starts_them(world):
    async def scenario():
        async with world.keeping():
            world.scale(3)
            world.wake()
            first = await world.all_serve(3)
            restarts = world.status().restarts
            world.scale(1, generation=2)
            status = await world.until(lambda status: pids_of(status).keys() == {0})
            assert pids_of(status)[0] == first[0]
            await until(lambda: not alive(first[1]) and not alive(first[2]))
            world.scale(2, generation=3)
            second = await world.all_serve(2)
            assert second[0] == first[0]
            assert world.status().restarts == restarts, "they were asked to end"
            assert world.phases()[-1] is ClusterPhase.RUNNING
            assert world.phases().count(ClusterPhase.STARTING) == 1

    asyncio.run(scenario())


class FullDriver:
    """A driver whose platform has no room for several brokers of a cluster, while `full`."""

    def __init__(self, driver):
        self.driver = driver
        self.full = True
        self.refused = 0

    def __getattr__(self, name):
        return getattr(self.driver, name)

    async def apply(self, plan):
        if self.full and len(plan.brokers) > 1:
            self.refused += 1
            return Outcome(Answer.REFUSED, "no room")
        return await self.driver.apply(plan)


@pytest.fixture
def drivers(world):
    """The driver of a keeper to come, whose platform has no room."""
    made = []

    def wrap(driver):
        made.append(FullDriver(driver))
        return made[0]

    world.wrap = wrap
    world.loop["retry_failed_ms"] = 300
    return made


def test_a_cluster_that_cannot_grow_sleeps_and_wakes(world, drivers):
    async def scenario():
        async with world.keeping():
            world.scale(1)
            world.wake()
            await world.all_serve(1)
            world.scale(3, generation=2, idle_timeout_ms=200)
            await world.until(lambda status: status.message == "no room")
            await world.until_phase(ClusterPhase.ASLEEP)
            assert ClusterPhase.FAILED not in world.phases()
            drivers[0].full = False
            world.want(scale=3, generation=3)
            world.wake()
            await world.all_serve(3)

    asyncio.run(scenario())


def test_a_cluster_that_cannot_grow_runs_on_and_grows_later(world, drivers):
    async def scenario():
        async with world.keeping():
            world.scale(1)
            world.wake()
            first = await world.all_serve(1)
            world.scale(3, generation=2)
            status = await world.until(lambda status: status.message == "no room")
            assert (status.phase, pids_of(status)) == (ClusterPhase.RUNNING, first)
            began = asyncio.get_running_loop().time()
            await until(lambda: drivers[0].refused == 3)
            assert asyncio.get_running_loop().time() - began > 0.3, "there are pauses"
            drivers[0].full = False
            grown = await world.all_serve(3)
            assert grown[0] == first[0]
            await world.until(lambda status: status.message == "")
            assert world.phases().count(ClusterPhase.STARTING) == 1

    asyncio.run(scenario())


def test_it_sleeps_once_no_broker_has_a_client_and_all_wake(world):
    async def scenario():
        async with world.keeping():
            spec = world.scale(3)
            world.wake()
            first = await world.all_serve(3)
            client = await world.client(world.status().brokers[2])
            world.store.put_spec(replace(spec, generation=2, idle_timeout_ms=200))
            await world.until(lambda status: status.connections == 1)
            taken = world.sampled
            # It still runs after several samples, which measure the time here.
            await until(lambda: world.sampled >= taken + 5)
            assert pids_of(world.status()) == first
            await client.close()
            await world.until_phase(ClusterPhase.ASLEEP)
            assert not any(map(alive, first.values()))
            world.store.put_spec(replace(spec, generation=3))
            world.wake()
            assert (await world.all_serve(3)).keys() == {0, 1, 2}

    world.loop["connections_interval_ms"] = 1
    asyncio.run(scenario())


def produce(login, count):
    """Produces records, as many to each partition."""
    producer = Producer({**login, "enable.idempotence": True})
    for number in range(count):
        producer.produce("orders", b"x", partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0


def produce_and_commit(login):
    """Produces to all partitions, and has a group behind by one record on each."""
    admin = AdminClient(login)
    admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(TIMEOUT_S)
    produce(login, RECORDS)
    consumer = Consumer({**login, "group.id": "billing"})
    committed = RECORDS // PARTITIONS - 1
    places = [TopicPartition("orders", number, committed) for number in range(PARTITIONS)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_a_sample_is_of_all_brokers_and_does_not_shrink_when_one_ends(world):
    world.loop |= {"sample_file_interval_ms": 100}

    def records_and_lag():
        """The records that were counted, and the lag of the group, in the newest sample."""
        sample = newest_written(world.folder / "bucket", CLUSTER)
        content = {"topics": {}, "groups": []} if sample is None else sample.content
        lags = {group["group"]: group["lag"] for group in content["groups"]}
        return content["topics"].get("orders", [0, 0, 0])[2], lags.get("billing")

    async def scenario():
        async with world.keeping():
            world.scale(3)
            world.wake()
            await world.all_serve(3)
            login = world.login(world.status().brokers[0].kafka)
            await asyncio.to_thread(produce_and_commit, login)
            await until(lambda: records_and_lag() == (RECORDS, PARTITIONS))
            leader = await asyncio.to_thread(leader_of_all, login)
            before = pids_of(world.status())[leader]
            kill(before)
            await world.slot_replaced(leader, before)
            # What it counted stays in the sum; those that count now began at 0.
            login = world.login(world.status().brokers[0].kafka)
            await asyncio.to_thread(produce, login, PARTITIONS)
            await until(lambda: records_and_lag() == (RECORDS + PARTITIONS, 2 * PARTITIONS))

    asyncio.run(scenario())


def leader_of_all(login):
    """The broker that leads most partitions."""
    topics = AdminClient(login).list_topics("orders", timeout=TIMEOUT_S).topics
    leaders = [partition.leader for partition in topics["orders"].partitions.values()]
    return max(leaders, key=leaders.count)
