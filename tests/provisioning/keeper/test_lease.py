"""The lease of a cell in etcd, and keepers as processes with such a lease."""

import asyncio
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from brokers.errors import MetadataError
from brokers.etcd import Etcd
from brokers.locations import EtcdLocation, metadata_location
from provisioning.cell.keeper.cellstore import CellRecords
from provisioning.cell.keeper.lease import KEY, KeeperLease, LeaseLostError
from provisioning.cell.keeper.records import StoreError
from provisioning.cell.keeper.settings import CellSettings, KeeperSettings, LoopSettings
from tests.etcd import running_etcd
from tests.provisioning.keeper.processes import LIMIT_S, KeeperServer
from tests.provisioning.keeper.test_store import STATUS

pytestmark = pytest.mark.full("stores")

NOW = "2026-01-01T00:00:00+00:00"
# Long enough that it does not end on a busy machine.
TTL_S = 60
# The shortest that etcd grants with the election timeout of the tests.
SHORT_TTL_S = 3


def client(location, timeout_s=5.0):
    place = metadata_location(location)
    assert isinstance(place, EtcdLocation)
    return Etcd(place, timeout_s=timeout_s)


@pytest.fixture
def location(etcd_server):
    return etcd_server.location()


def test_one_of_many_has_it(location):
    leases = [KeeperLease(client(location), TTL_S) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        holders = list(pool.map(lambda lease: lease.try_acquire(NOW), leases))
    assert holders.count(None) == 1
    assert [lease.held() for lease in leases] == [holder is None for holder in holders]
    first = leases[holders.index(None)]
    others = [lease for lease in leases if lease is not first]
    said = others[0].try_acquire(NOW)
    assert said is not None
    assert f"since {NOW}" in said.description
    first.release()
    assert not first.held()
    assert others[0].try_acquire(NOW) is None
    assert others[1].try_acquire(NOW) is not None


def test_who_waits_gets_it_when_it_is_free(location):
    first, second = (KeeperLease(client(location), TTL_S) for _ in range(2))
    assert first.try_acquire(NOW) is None

    async def scenario():
        waiting = asyncio.create_task(second.acquire(NOW))
        keeping = asyncio.create_task(first.keep())
        await asyncio.wait({waiting, keeping}, timeout=0.1)
        assert not waiting.done()
        keeping.cancel()
        await asyncio.to_thread(first.release)
        await asyncio.wait_for(waiting, LIMIT_S)

    asyncio.run(scenario())
    assert second.held()


def test_a_holder_that_was_stopped_knows_before_it_acts(location):
    clock = [100.0]
    lease = KeeperLease(client(location), TTL_S, clock=lambda: clock[0])
    assert lease.try_acquire(NOW) is None
    records = CellRecords(location, lease.held)
    records.put_status("cl_a", STATUS)
    clock[0] += TTL_S * 0.8
    assert not lease.held()
    for write in (
        lambda: records.put_status("cl_b", STATUS),
        lambda: records.remove_wake("cl_a", 1),
        lambda: records.remove_earlier_sample("cl_a"),
    ):
        with pytest.raises(StoreError, match="lease"):
            write()
    assert records.statuses().keys() == {"cl_a"}
    with pytest.raises(LeaseLostError):
        asyncio.run(lease.keep())


def test_a_lease_that_etcd_ended_is_lost(location):
    etcd = client(location)
    lease = KeeperLease(etcd, SHORT_TTL_S)
    assert lease.try_acquire(NOW) is None
    entry = etcd.get(KEY)
    assert entry is not None
    etcd.revoke_lease(entry.lease)
    with pytest.raises(LeaseLostError):
        asyncio.run(lease.keep())


def test_an_etcd_that_is_away_ends_a_lease_in_time(tmp_path):
    with running_etcd(tmp_path) as server:
        location = server.location()
        lease = KeeperLease(client(location, 0.2), SHORT_TTL_S)
        assert lease.try_acquire(NOW) is None
        server.pause()
        with pytest.raises(LeaseLostError):
            asyncio.run(lease.keep())
        assert not lease.held()
        with pytest.raises(MetadataError):
            lease.try_acquire(NOW)
        server.unpause()
        # A lease that was requested meanwhile may be granted, and then ends by its time.
        asyncio.run(asyncio.wait_for(lease.acquire(NOW), LIMIT_S))


@pytest.fixture
def keepers(tmp_path, location):
    """Two keepers with folders of their own, as on two machines."""
    for name in ("dfs", "bucket", "a", "b"):
        (tmp_path / name).mkdir()
    cell = CellSettings(location, tmp_path / "dfs", str(tmp_path / "bucket"), tmp_path / "secret")
    settings = KeeperSettings(cell, LoopSettings(tmp_path / "a", lease_ttl_s=SHORT_TTL_S))
    other = replace(settings, keeper=replace(settings.keeper, folder=tmp_path / "b"))
    return KeeperServer(settings, "a"), KeeperServer(other, "b")


def wait_until_logged(server, text):
    until = time.monotonic() + LIMIT_S
    while text not in server.log.read_text():
        assert time.monotonic() < until, server.log.read_text()
        assert server.process.poll() is None, server.log.read_text()


def test_a_keeper_takes_over_from_one_that_is_killed(keepers):
    first, second = keepers
    with first:
        second.start(wait=False)
        wait_until_logged(second, "waiting until it ends")
        first.kill()
        second.wait_ready()
        assert second.stop() == 0


def test_a_keeper_that_stood_still_ends_and_another_has_the_cell(keepers):
    first, second = keepers
    with first:
        first.process.send_signal(signal.SIGSTOP)
        second.start()
        first.process.send_signal(signal.SIGCONT)
        assert first.wait() == 1
        assert "the lease of the cell is lost" in first.log.read_text()
        assert second.stop() == 0
