"""The local driver with brokers that misbehave, for which there is a stand-in."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.backoff import Backoff
from provisioning.cell.drivers import process
from provisioning.cell.drivers.base import Answer, BrokerPlan, BrokerState, ClusterPlan, Endpoints
from provisioning.cell.drivers.local import LocalDriver
from provisioning.cell.drivers.logs import LogLimits
from provisioning.cell.drivers.slot import LocalOptions
from tests.provisioning.driver_conformance import (
    CLUSTER,
    LIMIT_S,
    Watched,
    is_failed,
    replaced,
)
from tests.provisioning.survivors import kill_survivors

FAKE = Path(__file__).with_name("fake_broker.py")
OPTIONS = LocalOptions(
    command=(sys.executable, str(FAKE), "--config"),
    backoff=Backoff(first_s=0.001, max_s=0.01, served_max_s=0.01, quiet_s=60.0),
)


class Slots:
    """Makes local drivers that run stand-ins, and plans for them."""

    def __init__(self, folder):
        self.run = folder / "run"
        self.starts_file = folder / "starts"
        self.options = OPTIONS

    def driver(self):
        return LocalDriver(self.run, self.options)

    def plan(self, *slots, **fake):
        settings = {"fake": {"starts": self.starts_file, **fake}}
        brokers = tuple(BrokerPlan(CLUSTER, slot, settings) for slot in slots or (0,))
        return ClusterPlan(CLUSTER, brokers)

    @property
    def starts(self):
        return len(self.starts_file.read_text().splitlines())

    @property
    def folder(self):
        return self.run / CLUSTER / "slot-0"

    def drive(self, scenario):
        """Runs a scenario with a started driver, and removes everything at its end."""

        async def whole():
            driver = self.driver()
            await driver.start()
            try:
                await scenario(Watched(driver))
            finally:
                await driver.remove(CLUSTER)
                await driver.close()

        asyncio.run(whole())


@pytest.fixture
def slots(tmp_path):
    slots = Slots(tmp_path)
    yield slots
    kill_survivors(slots.run)


async def until(holds):
    async with asyncio.timeout(LIMIT_S):
        while not holds():
            await asyncio.sleep(0.005)


def test_endpoints_are_read_from_the_ready_line(slots):
    async def scenario(watched):
        await watched.driver.apply(slots.plan())
        broker = await watched.until_running()
        assert broker.endpoints == Endpoints("127.0.0.1:1", "", "127.0.0.1:3")
        assert broker.name == f"pid {broker.pid}"

    slots.drive(scenario)


def test_one_that_does_not_start_is_tried_until_it_does(slots):
    async def scenario(watched):
        await watched.driver.apply(slots.plan(status=1, times=6))
        failing = await watched.until(lambda o: o.brokers[0].failures >= 6)
        assert failing.brokers[0].message == "did not start: this is why"
        broker = await watched.until_running()
        assert broker.failures == 0
        assert broker.message == ""
        assert slots.starts == 7
        assert (await watched.driver.observe(CLUSTER)).restarts == 6

    slots.drive(scenario)


def test_one_that_refuses_its_settings_is_tried_once(slots):
    async def scenario(watched):
        await watched.driver.apply(slots.plan(status=2))
        failed = await watched.until(is_failed)
        assert failed.brokers[0].message == "refused its settings: this is why"
        await watched.driver.apply(slots.plan(1, status=2))
        # Slot 1 has failed in the same way since, so slot 0 had enough time to be started again.
        await watched.until(lambda o: [b.slot for b in o.brokers] == [1] and is_failed(o))
        assert slots.starts == 2

    slots.drive(scenario)


def test_one_that_stands_down_is_started_again(slots):
    async def scenario(watched):
        await watched.driver.apply(slots.plan(brief=True))
        await watched.until(lambda o: o.restarts >= 5)
        stood_down = await watched.until(lambda o: bool(o.brokers[0].message))
        assert stood_down.brokers[0].message == "stood down"
        assert stood_down.brokers[0].failures == 0

    slots.drive(scenario)


def test_one_that_serves_between_two_polls_has_not_failed_to_start(slots):
    slots.options = replace(slots.options, ready_poll_s=3600.0)

    async def scenario(watched):
        await watched.driver.apply(slots.plan(brief=True))
        stood_down = await watched.until(lambda o: o.restarts >= 5)
        assert stood_down.brokers[0].failures == 0

    slots.drive(scenario)


def test_one_that_never_serves_is_killed_and_started_again(slots):
    slots.options = replace(slots.options, start_timeout_s=0.3)

    async def scenario(watched):
        await watched.driver.apply(slots.plan(silent=True))
        late = await watched.until(lambda o: o.restarts >= 2)
        assert late.brokers[0].failures >= 2
        assert "in time" in late.brokers[0].message

    slots.drive(scenario)


def test_one_that_does_not_stop_is_killed(slots):
    slots.options = replace(slots.options, stop_timeout_s=0.2)

    async def scenario(watched):
        await watched.driver.apply(slots.plan(stubborn=True))
        broker = await watched.until_running()
        await watched.driver.stop(CLUSTER, clean=True)
        await watched.until_gone()
        assert process.identify_process(broker.pid) is None
        assert (await watched.driver.observe(CLUSTER)).restarts == 0

    slots.drive(scenario)


def test_a_wake_does_not_wait_long_for_one_that_does_not_stop(slots):
    slots.options = replace(slots.options, stop_timeout_s=3600.0, stop_timeout_awaited_s=0.2)

    async def scenario(watched):
        await watched.driver.apply(slots.plan(stubborn=True))
        first = await watched.until_running()
        await watched.driver.stop(CLUSTER, clean=True)
        await until(slots.starts_file.with_name("asked").exists)
        await watched.driver.apply(slots.plan())
        await watched.until(replaced(first.name))
        assert (await watched.driver.observe(CLUSTER)).restarts == 0, "it was asked to end"

    slots.drive(scenario)


def test_a_slot_that_is_not_planned_any_more_is_stopped(slots):
    async def scenario(watched):
        await watched.driver.apply(slots.plan(0, 1, 2))
        await watched.until(lambda o: [b.state for b in o.brokers] == [BrokerState.RUNNING] * 3)
        await watched.driver.apply(slots.plan(1))
        left = await watched.until(lambda o: len(o.brokers) == 1)
        assert left.brokers[0].slot == 1
        assert left.restarts == 0

    slots.drive(scenario)


def test_a_broker_that_cannot_be_started_says_why(slots):
    slots.options = replace(slots.options, command=("/nonexistent/broker", "--config"))

    async def scenario(watched):
        await watched.driver.apply(slots.plan())
        waiting = await watched.until(lambda o: o.brokers[0].failures >= 3)
        assert "No such file" in waiting.brokers[0].message
        await watched.driver.stop(CLUSTER, clean=True)
        await watched.until_gone()

    slots.drive(scenario)


@pytest.mark.parametrize("cluster_id", ["..", ".", "../x", "a/b", "", "cl_\n"])
def test_an_id_cannot_leave_the_folder(slots, cluster_id):
    async def scenario(watched):
        plan = ClusterPlan(cluster_id, (BrokerPlan(cluster_id, 0, {}),))
        assert (await watched.driver.apply(plan)).answer is Answer.REFUSED
        assert (await watched.driver.remove(cluster_id)).answer is Answer.REFUSED
        assert await watched.driver.clusters() == frozenset()

    slots.drive(scenario)


def test_a_pid_that_was_used_again_is_not_taken_for_a_broker(slots):
    slots.folder.mkdir(parents=True)
    ours = process.identify_process(os.getpid())
    assert ours is not None
    state = {"v": 1, "pid": ours.pid, "started": f"{ours.started}0"}
    (slots.folder / "state.json").write_text(json.dumps(state))

    async def scenario(watched):
        assert (await watched.driver.observe(CLUSTER)).brokers == ()
        assert await watched.driver.clusters() == {CLUSTER}

    slots.drive(scenario)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 2, "pid": 1}', '{"v": 1, "pid": "x"}'])
def test_a_damaged_state_is_none(slots, text):
    slots.folder.mkdir(parents=True)
    (slots.folder / "state.json").write_text(text)

    async def scenario(watched):
        await watched.driver.apply(slots.plan())
        await watched.until_running()

    slots.drive(scenario)


@pytest.mark.parametrize("written_down", [True, False], ids=["written down", "not written down"])
@pytest.mark.parametrize("pidfd", [True, False], ids=["pidfd", "no pidfd"])
def test_a_survivor_is_found_and_its_end_is_noticed(slots, monkeypatch, written_down, pidfd):
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open")

    async def earlier():
        driver = slots.driver()
        await driver.start()
        await driver.apply(slots.plan())
        broker = await Watched(driver).until_running()
        await driver.close()
        return broker

    survivor = asyncio.run(earlier())
    if not written_down:
        (slots.folder / "state.json").unlink()

    async def scenario(watched):
        running = await watched.until_running()
        assert running.pid == survivor.pid
        await watched.driver.apply(slots.plan())
        os.kill(running.pid, 9)
        again = await watched.until(replaced(running.name))
        assert again.restarts == 1
        os.kill(again.brokers[0].pid, 9)
        await watched.until(lambda o: replaced(running.name)(o) and o.restarts == 2)

    slots.drive(scenario)


def test_a_survivor_that_is_left_alone_is_not_started_again(slots):
    async def earlier():
        driver = slots.driver()
        await driver.start()
        await driver.apply(slots.plan())
        broker = await Watched(driver).until_running()
        await driver.close()
        return broker

    survivor = asyncio.run(earlier())

    async def scenario(watched):
        assert (await watched.until_running()).pid == survivor.pid
        os.kill(survivor.pid, 9)
        await watched.until_gone()
        assert slots.starts == 1

    slots.drive(scenario)


LOG = (
    "2026-01-31T12:00:00.000000Z  INFO freshet_storage::lane: nothing to see\n"
    "2026-01-31T12:00:00.000001Z  WARN freshet_storage::lane: the disk is slow\n"
    "2026-01-31T12:00:00.000002Z ERROR freshet_storage::lane: the disk is gone\n"
    "thread 'main' panicked\n"
)


def test_warnings_are_passed_on_with_their_broker(slots, capsys):
    async def scenario(watched):
        await watched.driver.apply(slots.plan(log=LOG))
        await watched.until_running()
        await watched.driver.stop(CLUSTER, clean=True)
        await watched.until_gone()

    slots.drive(scenario)
    said = capsys.readouterr().err
    assert f"{CLUSTER}/0 | 2026-01-31T12:00:00.000001Z  WARN" in said
    assert f"{CLUSTER}/0 | 2026-01-31T12:00:00.000002Z ERROR" in said
    assert f"{CLUSTER}/0 | thread 'main' panicked" in said
    assert "nothing to see" not in said


def test_a_log_is_rotated_while_it_is_written_to(slots):
    slots.options = replace(slots.options, log=LogLimits(bytes_max=1000, files=2))

    async def scenario(watched):
        long = LOG.splitlines(keepends=True)[0] * 20
        await watched.driver.apply(slots.plan(log=long))
        broker = await watched.until_running()
        log, older = slots.folder / "broker.log", slots.folder / "broker.log.1"
        await until(lambda: older.exists() and log.stat().st_size == 0)
        assert older.read_text() == long
        assert older.stat().st_mode & 0o077 == 0
        for _ in range(3):
            with log.open("a") as file:
                file.write(long)
            await until(lambda: log.stat().st_size == 0)
        names = sorted(path.name for path in slots.folder.glob("broker.log*"))
        assert names == ["broker.log", "broker.log.1", "broker.log.2"]
        assert (await watched.until_running()).pid == broker.pid

    slots.drive(scenario)
