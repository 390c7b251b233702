"""The conformance suite of drivers: a driver's own tests inherit `DriverConformance`.

The brokers are real. A `Rig` makes drivers, and can crash a broker without the driver's knowledge.
"""

# ruff: noqa: D102 (the name of a test says what it tests)
from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brokers.metadata import CellStore
from provisioning.cell.drivers.base import (
    Answer,
    BrokerObservation,
    BrokerPlan,
    BrokerState,
    ClusterObservation,
    ClusterPlan,
    Driver,
    Outcome,
)
from provisioning.cell.status.reader import read_status

# A time limit that a test reaches only where something is wrong.
LIMIT_S = 120.0

CLUSTER = "cl_conformance"

# Pause before a request is repeated that cannot be done yet.
PAUSE_S = 0.05


class Rig(ABC):
    """Makes drivers over one platform, and knows the clusters of one test."""

    cluster = CLUSTER
    neighbour = "cl_neighbour"
    # Where the test's files are; the metadata store among them.
    folder: Path

    @abstractmethod
    def driver(self) -> Driver:
        """A new driver over the same platform, as a new keeper makes it."""

    @abstractmethod
    def plan(self, cluster_id: str, scale: int = 1, **sections: dict[str, object]) -> ClusterPlan:
        """A plan with a broker on each slot. `sections` are further settings of them."""

    @abstractmethod
    def crash(self, broker: BrokerObservation) -> None:
        """Kills a broker without the driver's knowledge."""

    @abstractmethod
    async def abandon(self, driver: Driver) -> None:
        """Ends a driver as the death of its keeper does. Its brokers go on."""

    def plan_of_several(self, scale: int) -> ClusterPlan:
        """A plan of the cluster with this many brokers, which its metadata says too."""
        metadata = CellStore(self.folder / "metadata.sqlite").cluster(self.cluster)
        metadata.create(scale=scale)
        metadata.set_scale(scale)
        return self.plan(self.cluster, scale)


def plan_of(
    cluster_id: str, scale: int, settings: Mapping[str, Mapping[str, object]]
) -> ClusterPlan:
    """A plan with a broker on each slot, which the others can reach."""
    listener = {"brokers": "127.0.0.1:0", "link_secret": "0" * 64, **settings["listener"]}
    brokers = (
        {**settings, "broker": {"node_id": slot}, "listener": listener} for slot in range(scale)
    )
    return ClusterPlan(
        cluster_id,
        tuple(BrokerPlan(cluster_id, slot, broker) for slot, broker in enumerate(brokers)),
    )


class Watched:
    """Waits for changes that a driver reports."""

    def __init__(self, driver: Driver, cluster_id: str = CLUSTER) -> None:
        """`cluster_id`: the cluster to wait for, where a call names no other."""
        self.driver = driver
        self.cluster_id = cluster_id
        self.notified = 0
        self._changed = asyncio.Event()
        driver.notify(self.on_change)

    def on_change(self, _cluster_id: str) -> None:
        """Counts a change that the driver reports; see `Driver.notify`."""
        self.notified += 1
        self._changed.set()

    async def until(
        self, holds: Callable[[ClusterObservation], bool], cluster_id: str = ""
    ) -> ClusterObservation:
        """Waits until an observation holds. It observes only when the driver reports a change."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                self._changed.clear()
                observation = await self.driver.observe(cluster_id or self.cluster_id)
                if holds(observation):
                    return observation
                await self._changed.wait()

    async def until_running(self, cluster_id: str = "") -> BrokerObservation:
        """Waits until the cluster's one broker serves."""
        observation = await self.until(running, cluster_id)
        return observation.brokers[0]

    async def until_gone(self, cluster_id: str = "") -> None:
        """Waits until the cluster has no broker."""
        await self.until(lambda observation: not observation.brokers, cluster_id)


def running(observation: ClusterObservation) -> bool:
    """Whether there are brokers and all of them serve."""
    states = {broker.state for broker in observation.brokers}
    return states == {BrokerState.RUNNING}


def names_of(observation: ClusterObservation) -> dict[int, str]:
    """The brokers of a cluster that serve: slot → name."""
    brokers = observation.brokers
    return {b.slot: b.name for b in brokers if b.state is BrokerState.RUNNING}


def replaced(name: str) -> Callable[[ClusterObservation], bool]:
    """A check whether the one broker serves and has another name than this one."""
    return lambda observation: running(observation) and observation.brokers[0].name != name


class LossyDriver:
    """A driver that loses the first reply to every request, before it took effect or after."""

    def __init__(self, driver: Driver, *, done: bool) -> None:
        self._driver = driver
        self._done = done
        self._asked: set[str] = set()
        self.lost = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._driver, name)

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """Loses the first reply; see `Driver`."""
        return await self._request("apply", lambda: self._driver.apply(plan))

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """Loses the first reply; see `Driver`."""
        return await self._request("stop", lambda: self._driver.stop(cluster_id, clean=clean))

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """Loses the first reply; see `Driver`."""
        return await self._request("replace", lambda: self._driver.replace(cluster_id, slot))

    async def remove(self, cluster_id: str, *, break_glass: str = "") -> Outcome:
        """Loses the first reply; see `Driver`."""
        return await self._request(
            "remove", lambda: self._driver.remove(cluster_id, break_glass=break_glass)
        )

    async def _request(
        self, name: str, call: Callable[[], Coroutine[Any, Any, Outcome]]
    ) -> Outcome:
        if name in self._asked:
            self._asked.remove(name)
            return await call()
        self._asked.add(name)
        self.lost += 1
        if self._done:
            await call()
        return Outcome(Answer.UNKNOWN, "the reply was lost")


@asynccontextmanager
async def driving(rig: Rig) -> AsyncIterator[Watched]:
    """A started driver. At the end all of its clusters are removed."""
    driver = rig.driver()
    await driver.start()
    try:
        yield Watched(driver, rig.cluster)
    finally:
        for cluster_id in await driver.clusters():
            await driver.remove(cluster_id)
        await driver.close()


async def accepted(request: Callable[[], Coroutine[Any, Any, Outcome]]) -> None:
    """Makes a request, and repeats it while its outcome is unknown, as a keeper does."""
    async with asyncio.timeout(LIMIT_S):
        while (outcome := await request()).answer is Answer.UNKNOWN:
            await asyncio.sleep(PAUSE_S)
    assert outcome.answer is Answer.ACCEPTED, outcome.message


class DriverConformance:
    """The suite. A subclass needs a fixture `rig`."""

    def test_a_cluster_is_created_once(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                driver, plan = watched.driver, rig.plan(rig.cluster)
                assert await driver.clusters() == frozenset()
                assert (await driver.observe(rig.cluster)).brokers == ()
                await accepted(lambda: driver.apply(plan))
                broker = await watched.until_running()
                assert broker.slot == 0
                assert broker.endpoints is not None
                assert await read_status(broker.endpoints.metrics, timeout_s=LIMIT_S)
                assert broker.failures == 0
                assert await driver.clusters() == {rig.cluster}
                notified = watched.notified
                await accepted(lambda: driver.apply(plan))
                await accepted(lambda: driver.apply(plan))
                assert (await driver.observe(rig.cluster)).brokers[0].name == broker.name
                assert watched.notified == notified, "nothing changed"

        asyncio.run(scenario())

    def test_it_sleeps_and_wakes(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                first = await watched.until_running()
                for _ in range(2):
                    await accepted(lambda: watched.driver.stop(rig.cluster, clean=True))
                await watched.until_gone()
                assert (await watched.driver.observe(rig.cluster)).restarts == 0
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                assert (await watched.until_running()).name != first.name

        asyncio.run(scenario())

    def test_a_wake_while_it_stops_starts_it_again(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await watched.until_running()
                await accepted(lambda: watched.driver.stop(rig.cluster, clean=True))
                await watched.until(is_stopping)
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                broker = await watched.until_running()
                assert broker.endpoints is not None
                assert await read_status(broker.endpoints.metrics, timeout_s=LIMIT_S)
                assert (await watched.driver.observe(rig.cluster)).restarts == 0, (
                    "it was asked to end"
                )

        asyncio.run(scenario())

    def test_a_crashed_broker_is_replaced_unasked(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                first = await watched.until_running()
                rig.crash(first)
                observation = await watched.until(replaced(first.name))
                assert observation.restarts == 1
                second = observation.brokers[0]
                rig.crash(second)
                assert (await watched.until(replaced(second.name))).restarts == 2

        asyncio.run(scenario())

    def test_a_broker_is_replaced_on_request(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                first = await watched.until_running()
                await accepted(lambda: watched.driver.replace(rig.cluster, 0))
                await watched.until(replaced(first.name))
                outcome = await watched.driver.replace("cl_other", 0)
                assert outcome.answer is Answer.REFUSED

        asyncio.run(scenario())

    def test_brokers_of_a_cluster_end_and_begin_each_by_itself(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                driver = watched.driver
                await accepted(lambda: driver.apply(rig.plan_of_several(3)))
                seen = await watched.until(lambda seen: names_of(seen).keys() == {0, 1, 2})
                first, ended = names_of(seen), seen.restarts
                rig.crash(seen.brokers[1])
                seen = await watched.until(lambda seen: names_of(seen).get(1, first[1]) != first[1])
                assert names_of(seen) == {**first, 1: names_of(seen)[1]}
                assert seen.restarts == ended + 1
                # A smaller scale stops the highest slot and no other.
                kept = {slot: name for slot, name in names_of(seen).items() if slot < 2}
                await accepted(lambda: driver.apply(rig.plan_of_several(2)))
                seen = await watched.until(lambda seen: len(seen.brokers) == 2)
                assert (names_of(seen), seen.restarts) == (kept, ended + 1)
                assert (await driver.replace(rig.cluster, 2)).answer is Answer.REFUSED
                # A larger one starts it again.
                await accepted(lambda: driver.apply(rig.plan_of_several(3)))
                seen = await watched.until(lambda seen: names_of(seen).keys() == {0, 1, 2})
                assert names_of(seen) == {**kept, 2: names_of(seen)[2]}
                for broker in seen.brokers:
                    assert broker.endpoints is not None
                    assert await read_status(broker.endpoints.metrics, timeout_s=LIMIT_S)
                await accepted(lambda: driver.stop(rig.cluster, clean=True))
                await watched.until_gone()
                assert (await driver.observe(rig.cluster)).restarts == ended + 1

        asyncio.run(scenario())

    def test_refused_settings_fail_and_are_not_tried_again(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                plan = rig.plan(rig.cluster, threads={"runtime": "many"})
                await accepted(lambda: watched.driver.apply(plan))
                failed = await watched.until(is_failed)
                assert "runtime" in failed.brokers[0].message
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await watched.until_running()

        asyncio.run(scenario())

    def test_new_settings_count_from_the_next_start(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                first = await watched.until_running()
                changed = rig.plan(rig.cluster, threads={"runtime": "many"})
                await accepted(lambda: watched.driver.apply(changed))
                assert (await watched.until_running()).name == first.name
                await accepted(lambda: watched.driver.replace(rig.cluster, 0))
                await watched.until(is_failed)

        asyncio.run(scenario())

    def test_a_new_keeper_finds_what_runs(self, rig: Rig) -> None:
        async def scenario() -> None:
            earlier = rig.driver()
            await earlier.start()
            await accepted(lambda: earlier.apply(rig.plan(rig.cluster)))
            first = await Watched(earlier, rig.cluster).until_running()
            await rig.abandon(earlier)
            async with driving(rig) as watched:
                running = await watched.until_running()
                assert replace(running, failures=0) == replace(first, failures=0)
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                assert (await watched.until_running()).name == first.name
                rig.crash(running)
                await watched.until(replaced(first.name))
                await accepted(lambda: watched.driver.stop(rig.cluster, clean=True))
                await watched.until_gone()

        asyncio.run(scenario())

    def test_a_new_keeper_starts_what_died_meanwhile(self, rig: Rig) -> None:
        async def scenario() -> None:
            earlier = rig.driver()
            await earlier.start()
            await accepted(lambda: earlier.apply(rig.plan(rig.cluster)))
            first = await Watched(earlier, rig.cluster).until_running()
            await rig.abandon(earlier)
            rig.crash(first)
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await watched.until(replaced(first.name))

        asyncio.run(scenario())

    def test_a_removed_cluster_leaves_nothing(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await accepted(lambda: watched.driver.apply(rig.plan(rig.neighbour)))
                await watched.until_running()
                neighbour = await watched.until_running(rig.neighbour)
                for _ in range(2):
                    await accepted(lambda: watched.driver.remove(rig.cluster))
                await watched.until_gone()
                assert await watched.driver.clusters() == {rig.neighbour}
                assert (await watched.until_running(rig.neighbour)).name == neighbour.name
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await watched.until_running()

        asyncio.run(scenario())

    def test_a_stop_by_force_is_a_stop(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await watched.until_running()
                await accepted(lambda: watched.driver.stop(rig.cluster, clean=False))
                await watched.until_gone()
                assert (await watched.driver.observe(rig.cluster)).restarts == 0

        asyncio.run(scenario())

    def test_a_start_can_be_taken_back(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(lambda: watched.driver.apply(rig.plan(rig.cluster)))
                await accepted(lambda: watched.driver.stop(rig.cluster, clean=True))
                await watched.until_gone()

        asyncio.run(scenario())

    @pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
    def test_lost_replies_cost_a_repetition(self, rig: Rig, done: bool) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                lossy = LossyDriver(watched.driver, done=done)
                await accepted(lambda: lossy.apply(rig.plan(rig.cluster)))
                first = await watched.until_running()
                await accepted(lambda: lossy.replace(rig.cluster, 0))
                await watched.until(replaced(first.name))
                await accepted(lambda: lossy.stop(rig.cluster, clean=True))
                await watched.until_gone()
                await accepted(lambda: lossy.remove(rig.cluster))
                assert await watched.driver.clusters() == frozenset()
                assert lossy.lost == 4

        asyncio.run(scenario())

    def test_a_plan_has_brokers_of_one_cluster_on_slots_of_their_own(self, rig: Rig) -> None:
        broker = rig.plan(rig.cluster).brokers[0]
        other = BrokerPlan("cl_other", 1, {})
        for brokers in [(), (broker, broker), (broker, other)]:
            with pytest.raises(ValueError, match=rig.cluster):
                ClusterPlan(rig.cluster, brokers)
        assert "listener" not in repr(broker), "settings hold secrets"


def is_failed(observation: ClusterObservation) -> bool:
    """Whether the one broker refused its settings."""
    return [broker.state for broker in observation.brokers] == [BrokerState.FAILED]


def is_stopping(observation: ClusterObservation) -> bool:
    """Whether the one broker stops, or has stopped."""
    return {broker.state for broker in observation.brokers} <= {BrokerState.STOPPING}
