"""One suite for the keeper's metadata store: the one in memory and the real one."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from brokers.metadata_records import BrokerStatus, Sample
from provisioning.cell.keeper.cellstore import CellRecords
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.records import (
    ClusterPhase,
    DesiredClusters,
    Spec,
    SpecState,
    Status,
    StoreError,
)
from provisioning.cell.keeper.store import AsyncStore
from provisioning.cell.notes import CellHealth, Removal, put_removal
from tests.provisioning.keeper.earlier import put_earlier_sample
from tests.provisioning.keeper.memory import MemoryStore
from tests.provisioning.keeper.processes import CLUSTER, LIMIT_S, Cell

SPEC = Spec(CLUSTER, 1, SpecState.ACTIVE, 1, 600_000)
BROKER = BrokerStatus(
    slot=0, link="127.0.0.1:1", kafka="127.0.0.1:2", metrics="127.0.0.1:3", pid=42
)
STATUS = Status(
    observed_generation=1,
    phase=ClusterPhase.RUNNING,
    since_ms=1_700_000_000_000,
    brokers=(BROKER,),
    connections=3,
    restarts=2,
    message="",
)


class InMemory:
    """The store in memory, with the writes of control plane and gateway."""

    def __init__(self):
        self.store = MemoryStore()

    def want(self):
        self.store.put_spec(SPEC)

    def wake(self):
        self.store.request_wake(CLUSTER, requested_at_ms=1, by="test")

    def remove_spec(self):
        self.store.remove_spec(CLUSTER)


class Real:
    """The real store, with the writes of control plane and gateway."""

    def __init__(self, location):
        self.store = CellRecords(location)
        self.cell = Cell(location)

    def want(self):
        self.cell.want()

    def wake(self):
        self.cell.store.request_wake(CLUSTER, requested_at_ms=1, by="test")

    def remove_spec(self):
        self.cell.store.remove_spec(CLUSTER)


@pytest.fixture(params=["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.full("stores"))])
def side(request, tmp_path):
    if request.param == "memory":
        return InMemory()
    if request.param == "sqlite":
        return Real(f"sqlite://{tmp_path}/metadata.sqlite")
    return Real(request.getfixturevalue("etcd_server").location())


@pytest.fixture(params=["sqlite", pytest.param("etcd", marks=pytest.mark.full("stores"))])
def earlier(request, tmp_path):
    if request.param == "sqlite":
        return Real(f"sqlite://{tmp_path}/metadata.sqlite")
    return Real(request.getfixturevalue("etcd_server").location())


def test_an_empty_cell(side):
    desired = side.store.desired()
    assert (desired.specs, desired.wakes) == ({}, {})
    assert side.store.statuses() == {}


def test_specs_and_wake_requests_are_read(side):
    side.want()
    side.wake()
    desired = side.store.desired()
    assert desired.specs == {CLUSTER: SPEC}
    wake = desired.wakes[CLUSTER]
    assert (wake.requested_at_ms, wake.by) == (1, "test")
    assert desired.revision >= wake.revision


@pytest.mark.parametrize(("stored", "read"), [(3, 3), (16, 16), (17, 16)])
def test_a_stored_scale_is_read_up_to_the_greatest(tmp_path, stored, read):
    side = Real(str(tmp_path / "metadata.sqlite"))
    side.cell.want(scale=stored, ports=(9092, 9093, 9094, 9095))
    assert side.store.desired().specs == {CLUSTER: replace(SPEC, scale=read)}


def test_a_wake_request_is_never_seen_before_its_spec(tmp_path, monkeypatch):
    """They are read one after the other, and both may be written between the two reads."""
    side = Real(str(tmp_path / "metadata.sqlite"))
    store = side.store._store
    for name in ("specs", "wakes"):
        listed = getattr(store, name)

        def then_write(listed=listed):
            records = listed()
            side.want()
            side.wake()
            return records

        monkeypatch.setattr(store, name, then_write)
    desired = side.store.desired()
    assert desired.wakes.keys() <= desired.specs.keys()
    assert side.store.watch(desired.revision, LIMIT_S) > desired.revision, "it is reported again"


def test_a_status_comes_back(side):
    side.want()
    side.store.put_status(CLUSTER, STATUS)
    assert side.store.statuses() == {CLUSTER: STATUS}


def test_what_an_earlier_release_left_is_moved(earlier):
    """Samples are returned until they are removed, and notes are moved to keys of their own."""
    store, cell = earlier.store, earlier.cell.store
    assert store.earlier_samples() == {}
    content = {"groups": [{"group": "a", "lag": None}], "topics": {}}
    put_earlier_sample(cell.location, CLUSTER, 7, content)
    put_earlier_sample(cell.location, "cl_purged", 8, {"removal": {"purged_at_ms": 8}})
    put_earlier_sample(cell.location, "cl_again", 8, {"removal": {"purged_at_ms": 8}})
    put_earlier_sample(cell.location, "keeper", 9, {"health": {"told_at_ms": 9}})
    newer = Removal(9, "aud_1", 10)
    put_removal(cell, "cl_again", newer)
    for _ in range(2):
        assert store.earlier_samples() == {CLUSTER: Sample(taken_at_ms=7, content=content)}
    assert store.removal("cl_purged") == Removal(8)
    assert store.removal("cl_again") == newer
    assert store.removal(CLUSTER) is None
    assert cell.samples().keys() == {CLUSTER}
    store.remove_earlier_sample(CLUSTER)
    assert cell.samples() == {}
    store.forget("cl_purged")
    assert store.removal("cl_purged") is None


def test_the_health_of_a_cell_comes_back(side):
    assert side.store.health() is None
    health = CellHealth(7, held=True, reason="too many", orphans=("cl_a",))
    side.store.put_health(health)
    assert side.store.health() == health


def test_only_the_wake_request_that_was_answered_is_removed(side):
    side.wake()
    first = side.store.desired().wakes[CLUSTER].revision
    side.store.remove_wake(CLUSTER, first)
    assert side.store.desired().wakes == {}
    side.wake()
    side.store.remove_wake(CLUSTER, first)
    second = side.store.desired().wakes[CLUSTER].revision
    assert second > first
    side.store.remove_wake(CLUSTER, second)
    assert side.store.desired().wakes == {}


def test_a_watch_reports_new_changes_and_nothing_else(side):
    side.want()
    revision = side.store.desired().revision
    assert side.store.watch(revision, 0.0) == revision
    side.store.put_status(CLUSTER, STATUS)
    assert side.store.watch(revision, 0.0) == revision, "a status is the keeper's own"
    side.wake()
    woken = side.store.watch(revision, LIMIT_S)
    assert woken > revision
    assert side.store.watch(woken, 0.0) == woken
    side.remove_spec()
    assert side.store.watch(woken, LIMIT_S) > woken


def test_a_watch_sees_a_change_while_it_waits(side):
    revision = side.store.desired().revision
    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(side.store.watch, revision, LIMIT_S)
        side.want()
        assert seen.result(LIMIT_S) > revision


def test_a_locked_file_is_an_error(tmp_path):
    file = tmp_path / "metadata.sqlite"
    store = CellRecords(str(file))
    store.put_status(CLUSTER, STATUS)
    asleep = Status(2, ClusterPhase.ASLEEP, 1)
    # Another process holds the lock: within one process two copies of SQLite ignore each other's.
    command = [sys.executable, "-c", LOCK, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locker:
        assert locker.stdin is not None
        assert locker.stdout is not None
        assert locker.stdout.readline() == b"locked\n"
        with pytest.raises(StoreError):
            store.put_status(CLUSTER, asleep)
        locker.stdin.close()
        assert locker.wait(LIMIT_S) == 0
    store.put_status(CLUSTER, asleep)
    assert store.statuses() == {CLUSTER: asleep}


LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_that_is_no_store_is_an_error(tmp_path):
    (tmp_path / "metadata.sqlite").write_text("this is no database, however long it may be\n" * 99)
    with pytest.raises(StoreError):
        CellRecords(str(tmp_path / "metadata.sqlite")).desired()


class Slow(MemoryStore):
    """A store that answers once the test permits it."""

    def __init__(self):
        super().__init__()
        self.let = threading.Event()

    def desired(self) -> DesiredClusters:
        self.let.wait(LIMIT_S)
        return super().desired()


def test_a_call_that_takes_too_long_has_failed(monkeypatch):
    monkeypatch.setattr("provisioning.cell.keeper.store.CALL_TIMEOUT_S", 0.01)
    slow = Slow()
    store = AsyncStore(slow, Metrics())

    async def scenario():
        with pytest.raises(StoreError, match="no answer"):
            await store.desired()
        assert "no answer" in str(store.failing)
        # Another call has another thread, and is answered.
        monkeypatch.setattr("provisioning.cell.keeper.store.CALL_TIMEOUT_S", LIMIT_S)
        await store.put_status(CLUSTER, STATUS)
        assert not store.failing
        slow.let.set()
        assert (await store.desired()).specs == {}
        store.close()

    asyncio.run(scenario())


class Late(MemoryStore):
    """A store whose first write of a status happens once the test permits it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let, self.done = (threading.Event() for _ in range(3))

    def put_status(self, cluster_id: str, status: Status) -> None:
        first = not self.let.is_set() and status.phase is ClusterPhase.RUNNING
        if first:
            self.begun.set()
            self.let.wait(LIMIT_S)
        super().put_status(cluster_id, status)
        if first:
            self.done.set()


def test_a_write_that_timed_out_does_not_overwrite_a_later_one():
    late = Late()
    store = AsyncStore(late, Metrics())
    asleep = replace(STATUS, phase=ClusterPhase.ASLEEP, brokers=())

    async def scenario():
        first = asyncio.create_task(store.put_status(CLUSTER, STATUS))
        assert await asyncio.to_thread(late.begun.wait, LIMIT_S)
        first.cancel()
        later = asyncio.create_task(store.put_status(CLUSTER, asleep))
        # It must wait for the first one. If it did not, it would be done by then.
        await asyncio.wait({later}, timeout=0.2)
        late.let.set()
        await later
        assert await asyncio.to_thread(late.done.wait, LIMIT_S)
        assert late.statuses() == {CLUSTER: asleep}
        store.close()

    asyncio.run(scenario())
