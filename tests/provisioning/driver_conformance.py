"""What every driver does, as tests: a driver's own tests inherit `DriverConformance`.

The brokers are real. A driver is reached through a `Rig`, which knows how to break what the driver
runs without its knowledge.
"""

# ruff: noqa: D102 (the name of a test says what it tests)
from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from provisioning.drivers.base import (
    Answer,
    BrokerObservation,
    BrokerPlan,
    BrokerState,
    ClusterObservation,
    ClusterPlan,
    Driver,
    Outcome,
)
from provisioning.keeper.probe import scrape

# Never reached when all is well.
LIMIT_S = 120.0

CLUSTER = "cl_conformance"


class Rig(ABC):
    """A driver under test, with the platform under it."""

    @abstractmethod
    def driver(self) -> Driver:
        """A new driver over the same platform, as a new keeper has."""

    @abstractmethod
    def plan(self, cluster_id: str, **sections: dict[str, object]) -> ClusterPlan:
        """One broker on slot 0 that starts; `sections` are further settings."""

    @abstractmethod
    def crash(self, broker: BrokerObservation) -> None:
        """Ends a broker behind the driver's back, without a clean stop."""

    @abstractmethod
    async def abandon(self, driver: Driver) -> None:
        """Takes the driver away as the death of its keeper does. Its brokers stay."""


class Watched:
    """A driver whose changes can be waited for."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.notified = 0
        self._changed = asyncio.Event()
        driver.notify(self._on_change)

    def _on_change(self, _cluster_id: str) -> None:
        self.notified += 1
        self._changed.set()

    async def until(
        self, holds: Callable[[ClusterObservation], bool], cluster_id: str = CLUSTER
    ) -> ClusterObservation:
        """Waits until an observation holds, looking only when the driver says that it changed."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                self._changed.clear()
                observation = await self.driver.observe(cluster_id)
                if holds(observation):
                    return observation
                await self._changed.wait()

    async def until_running(self, cluster_id: str = CLUSTER) -> BrokerObservation:
        """Waits until its one broker serves."""
        observation = await self.until(running, cluster_id)
        return observation.brokers[0]

    async def until_gone(self, cluster_id: str = CLUSTER) -> None:
        """Waits until it has no broker."""
        await self.until(lambda observation: not observation.brokers, cluster_id)


def running(observation: ClusterObservation) -> bool:
    """Whether all its brokers serve."""
    states = {broker.state for broker in observation.brokers}
    return states == {BrokerState.RUNNING}


def replaced(name: str) -> Callable[[ClusterObservation], bool]:
    """Whether its one broker is another than this one, and serves."""
    return lambda observation: running(observation) and observation.brokers[0].name != name


class LossyDriver:
    """A driver whose every request is lost the first time: before it was done, or after."""

    def __init__(self, driver: Driver, *, done: bool) -> None:
        self._driver = driver
        self._done = done
        self._asked: set[str] = set()
        self.lost = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._driver, name)

    async def apply(self, plan: ClusterPlan) -> Outcome:
        """Loses the first reply."""
        return await self._request("apply", lambda: self._driver.apply(plan))

    async def stop(self, cluster_id: str, *, clean: bool) -> Outcome:
        """Loses the first reply."""
        return await self._request("stop", lambda: self._driver.stop(cluster_id, clean=clean))

    async def replace(self, cluster_id: str, slot: int) -> Outcome:
        """Loses the first reply."""
        return await self._request("replace", lambda: self._driver.replace(cluster_id, slot))

    async def remove(self, cluster_id: str) -> Outcome:
        """Loses the first reply."""
        return await self._request("remove", lambda: self._driver.remove(cluster_id))

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
    """A started driver; whatever it still runs at the end is removed."""
    driver = rig.driver()
    await driver.start()
    try:
        yield Watched(driver)
    finally:
        for cluster_id in await driver.clusters():
            await driver.remove(cluster_id)
        await driver.close()


async def accepted(request: Coroutine[Any, Any, Outcome]) -> None:
    """Asks, and insists."""
    outcome = await request
    assert outcome.answer is Answer.ACCEPTED, outcome.message


class DriverConformance:
    """Inherit it, and give a fixture `rig`."""

    def test_a_cluster_is_created_once(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                driver, plan = watched.driver, rig.plan(CLUSTER)
                assert await driver.clusters() == frozenset()
                assert (await driver.observe(CLUSTER)).brokers == ()
                await accepted(driver.apply(plan))
                broker = await watched.until_running()
                assert broker.slot == 0
                assert broker.endpoints is not None
                assert await scrape(broker.endpoints.metrics, timeout_s=LIMIT_S)
                assert broker.failures == 0
                assert await driver.clusters() == {CLUSTER}
                notified = watched.notified
                await accepted(driver.apply(plan))
                await accepted(driver.apply(plan))
                assert (await driver.observe(CLUSTER)).brokers[0].name == broker.name
                assert watched.notified == notified, "nothing changed"

        asyncio.run(scenario())

    def test_it_sleeps_and_wakes(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                first = await watched.until_running()
                for _ in range(2):
                    await accepted(watched.driver.stop(CLUSTER, clean=True))
                await watched.until_gone()
                assert (await watched.driver.observe(CLUSTER)).restarts == 0
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                assert (await watched.until_running()).name != first.name

        asyncio.run(scenario())

    def test_a_wake_while_it_stops_starts_it_again(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await watched.until_running()
                await accepted(watched.driver.stop(CLUSTER, clean=True))
                await watched.until(is_stopping)
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                broker = await watched.until_running()
                assert broker.endpoints is not None
                assert await scrape(broker.endpoints.metrics, timeout_s=LIMIT_S)
                assert (await watched.driver.observe(CLUSTER)).restarts == 0, "it was asked to end"

        asyncio.run(scenario())

    def test_a_crashed_broker_is_replaced_unasked(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
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
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                first = await watched.until_running()
                await accepted(watched.driver.replace(CLUSTER, 0))
                await watched.until(replaced(first.name))
                outcome = await watched.driver.replace("cl_other", 0)
                assert outcome.answer is Answer.REFUSED

        asyncio.run(scenario())

    def test_refused_settings_fail_and_are_not_tried_again(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                plan = rig.plan(CLUSTER, listener={"kafka": "nowhere"})
                await accepted(watched.driver.apply(plan))
                failed = await watched.until(is_failed)
                assert "kafka" in failed.brokers[0].message
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await watched.until_running()

        asyncio.run(scenario())

    def test_a_new_keeper_finds_what_runs(self, rig: Rig) -> None:
        async def scenario() -> None:
            earlier = rig.driver()
            await earlier.start()
            await accepted(earlier.apply(rig.plan(CLUSTER)))
            first = await Watched(earlier).until_running()
            await rig.abandon(earlier)
            async with driving(rig) as watched:
                found = await watched.until_running()
                assert replace(found, failures=0) == replace(first, failures=0)
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                assert (await watched.until_running()).name == first.name
                rig.crash(found)
                await watched.until(replaced(first.name))
                await accepted(watched.driver.stop(CLUSTER, clean=True))
                await watched.until_gone()

        asyncio.run(scenario())

    def test_a_new_keeper_starts_what_died_meanwhile(self, rig: Rig) -> None:
        async def scenario() -> None:
            earlier = rig.driver()
            await earlier.start()
            await accepted(earlier.apply(rig.plan(CLUSTER)))
            first = await Watched(earlier).until_running()
            await rig.abandon(earlier)
            rig.crash(first)
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await watched.until(replaced(first.name))

        asyncio.run(scenario())

    def test_a_removed_cluster_leaves_nothing(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await accepted(watched.driver.apply(rig.plan("cl_neighbour")))
                await watched.until_running()
                neighbour = await watched.until_running("cl_neighbour")
                for _ in range(2):
                    await accepted(watched.driver.remove(CLUSTER))
                await watched.until_gone()
                assert await watched.driver.clusters() == {"cl_neighbour"}
                assert (await watched.until_running("cl_neighbour")).name == neighbour.name
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await watched.until_running()

        asyncio.run(scenario())

    def test_a_stop_by_force_is_a_stop(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await watched.until_running()
                await accepted(watched.driver.stop(CLUSTER, clean=False))
                await watched.until_gone()
                assert (await watched.driver.observe(CLUSTER)).restarts == 0

        asyncio.run(scenario())

    def test_a_start_can_be_taken_back(self, rig: Rig) -> None:
        async def scenario() -> None:
            async with driving(rig) as watched:
                await accepted(watched.driver.apply(rig.plan(CLUSTER)))
                await accepted(watched.driver.stop(CLUSTER, clean=True))
                await watched.until_gone()

        asyncio.run(scenario())

    @pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
    def test_lost_replies_cost_a_repetition(self, rig: Rig, done: bool) -> None:
        async def insist(request: Callable[[], Coroutine[Any, Any, Outcome]]) -> None:
            while (await request()).answer is Answer.UNKNOWN:
                pass

        async def scenario() -> None:
            async with driving(rig) as watched:
                lossy = LossyDriver(watched.driver, done=done)
                await insist(lambda: lossy.apply(rig.plan(CLUSTER)))
                first = await watched.until_running()
                await insist(lambda: lossy.replace(CLUSTER, 0))
                await watched.until(replaced(first.name))
                await insist(lambda: lossy.stop(CLUSTER, clean=True))
                await watched.until_gone()
                await insist(lambda: lossy.remove(CLUSTER))
                assert await watched.driver.clusters() == frozenset()
                assert lossy.lost == 4

        asyncio.run(scenario())

    def test_a_plan_has_brokers_of_one_cluster_on_slots_of_their_own(self, rig: Rig) -> None:
        broker = rig.plan(CLUSTER).brokers[0]
        other = BrokerPlan("cl_other", 1, {})
        for brokers in [(), (broker, broker), (broker, other)]:
            with pytest.raises(ValueError, match=CLUSTER):
                ClusterPlan(CLUSTER, brokers)
        assert "listener" not in repr(broker), "settings hold secrets"


def is_failed(observation: ClusterObservation) -> bool:
    """Whether its one broker refused its settings."""
    return [broker.state for broker in observation.brokers] == [BrokerState.FAILED]


def is_stopping(observation: ClusterObservation) -> bool:
    """Whether its one broker stops, or has stopped."""
    return {broker.state for broker in observation.brokers} <= {BrokerState.STOPPING}
