"""The keeper's maintenance of etcd: it compacts the history and reports the size of a real etcd."""

import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from brokers.errors import InvalidError
from brokers.etcd import COMPACTED, Etcd
from brokers.locations import EtcdLocation, metadata_location
from console.base.runtime.clock import Clock, SteadyClock
from provisioning.cell.keeper import maintenance
from provisioning.cell.keeper.__main__ import make_lease, make_maintenance
from provisioning.cell.keeper.lease import KeeperLease
from provisioning.cell.keeper.maintenance import KEY, EtcdMaintenance
from provisioning.cell.keeper.metrics import Metrics
from provisioning.cell.keeper.settings import (
    CellSettings,
    DriverSettings,
    KeeperSettings,
    LoopSettings,
)
from provisioning.cell.notes import health_of
from tests.etcd import running_etcd
from tests.provisioning.keeper.processes import LIMIT_S, Cell, KeeperServer
from tests.provisioning.survivors import kill_survivors

pytestmark = pytest.mark.full("stores")

HOUR_MS = 3_600_000
QUOTA = 1 << 30


class SetClock(Clock):
    """A clock that a test sets."""

    def __init__(self):
        self.at_ms = 1_800_000_000_000

    def now_ms(self):
        return self.at_ms


class Kept:
    """A cell in etcd, with the maintenance of its keeper."""

    def __init__(self, location, clock=None, leads=lambda: True):
        place = metadata_location(location)
        assert isinstance(place, EtcdLocation)
        self.etcd = Etcd(place)
        self.metrics = Metrics()
        self.clock = clock or SetClock()
        self.maintenance = EtcdMaintenance(
            place,
            self.metrics,
            self.clock,
            leads=leads,
            interval_ms=HOUR_MS,
            quota_bytes=QUOTA,
        )

    def write(self, value):
        """Writes a key. Returns the revision."""
        self.etcd.write({"a": value})
        entry = self.etcd.get("a")
        assert entry is not None
        return entry.revision

    def has_history_of(self, revision):
        """Whether the values at a revision can still be read."""
        try:
            return bool(self.etcd.range("a", revision=revision).entries)
        except InvalidError as error:
            if COMPACTED not in str(error):
                raise
            return False

    def turn_after(self, passed_ms):
        self.clock.at_ms += passed_ms
        self.maintenance.take_turn()

    def metric(self, name):
        """The value of a metric; None where it has none."""
        lines = self.metrics.render().splitlines()
        values = [line.split()[1] for line in lines if line.startswith(f"freshet_keeper_{name} ")]
        return float(values[0]) if values else None


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An etcd of these tests alone, because its history is shared by all cells in it."""
    with running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def kept(server):
    return Kept(server.location())


def test_history_older_than_the_interval_goes(kept):
    old = kept.write(b"1")
    kept.turn_after(0)
    young = kept.write(b"2")
    kept.turn_after(HOUR_MS - 1)
    assert kept.has_history_of(old)
    kept.write(b"3")
    kept.turn_after(1)
    assert not kept.has_history_of(old)
    assert kept.etcd.range("a", revision=young).entries[0].value == b"2"
    assert kept.etcd.get("a").value == b"3"
    assert kept.metric("etcd_compactions_total") == 1
    # The same happens every hour.
    kept.turn_after(HOUR_MS)
    assert not kept.has_history_of(young)
    assert kept.metric("etcd_compactions_total") == 2


def test_the_next_keeper_goes_on_where_the_one_before_ended(kept, server):
    old = kept.write(b"1")
    kept.turn_after(0)
    kept.write(b"2")
    later = Kept(server.location(kept.etcd.location.root.rstrip("/")), kept.clock)
    later.turn_after(HOUR_MS)
    assert not later.has_history_of(old)


def test_who_does_not_have_the_lease_compacts_nothing(kept, server):
    location = server.location(kept.etcd.location.root.rstrip("/"))
    holder, other = (KeeperLease(kept.etcd, 60) for _ in range(2))
    assert holder.try_acquire("now") is None
    assert other.try_acquire("now") is not None
    first, second = (Kept(location, kept.clock, lease.held) for lease in (holder, other))
    old = kept.write(b"1")
    second.turn_after(0)
    assert kept.etcd.get(KEY) is None
    first.turn_after(0)
    kept.write(b"2")
    second.turn_after(HOUR_MS)
    assert kept.has_history_of(old)
    # It knows the size nevertheless, and only the keeper that leads compacts.
    assert second.metric("etcd_file_bytes")
    first.turn_after(0)
    assert not kept.has_history_of(old)
    holder.release()


def test_what_somebody_else_compacted_is_no_failure(kept):
    kept.turn_after(0)
    kept.etcd.compact(kept.write(b"1"))
    kept.turn_after(HOUR_MS)
    assert kept.metric("etcd_compactions_total") == 0
    kept.write(b"2")
    kept.clock.at_ms += HOUR_MS
    with ThreadPoolExecutor(8) as pool:
        for turn in [pool.submit(kept.maintenance.take_turn) for _ in range(8)]:
            turn.result()
    assert kept.metric("etcd_compactions_total") == 1
    assert kept.metric("etcd_compaction_failures_total") == 0


def test_a_clock_that_was_set_back_begins_the_interval_anew(kept):
    old = kept.write(b"1")
    kept.turn_after(0)
    before = kept.etcd.get(KEY)
    kept.write(b"2")
    kept.turn_after(-30 * HOUR_MS)
    assert kept.has_history_of(old)
    assert kept.etcd.get(KEY).revision > before.revision
    kept.turn_after(HOUR_MS)
    assert not kept.has_history_of(old)


def test_a_mark_that_cannot_be_read_is_written_anew(kept):
    kept.etcd.write({KEY: b"?"})
    kept.turn_after(0)
    old = kept.write(b"1")
    kept.turn_after(HOUR_MS)
    assert kept.metric("etcd_compactions_total") == 1
    assert kept.has_history_of(old)


def logged(caplog):
    """The texts that the maintenance logged."""
    return [record.message for record in caplog.records if record.name == maintenance.__name__]


def test_a_failure_is_logged_once_and_repeated_at_the_next_turn(tmp_path, caplog):
    with running_etcd(tmp_path) as server:
        kept = Kept(server.location())
        old = kept.write(b"1")
        kept.turn_after(0)
        kept.write(b"2")
        size = kept.metric("etcd_file_bytes")
        server.stop()
        for _ in range(3):
            kept.turn_after(HOUR_MS)
        assert kept.metric("etcd_compaction_failures_total") == 3
        # The last size of a member counts while it is away.
        assert kept.metric("etcd_file_bytes") == size
        assert [text.split(": ")[0] for text in logged(caplog)] == [
            "the size of etcd's database is not known",
            "etcd's history is not compacted",
        ]
        server.start()
        kept.turn_after(0)
        assert not kept.has_history_of(old)
        assert logged(caplog)[-1] == "etcd's history can be compacted again"


def test_a_refused_status_is_logged_once_and_gives_no_size(tmp_path, caplog):
    with running_etcd(tmp_path) as server:
        server.guard()
        root = Kept(server.as_root("cell"))
        for path, body in (
            ("auth/user/add", {"name": "weak", "password": "of-weak"}),
            ("auth/role/add", {"name": "weak"}),
            ("auth/user/grant", {"user": "weak", "role": "weak"}),
            ("auth/user/grant", {"user": "weak", "role": "root"}),
        ):
            root.etcd.call(path, body)
        (tmp_path / "weak").write_text("of-weak")
        options = {"user": "weak", "password_file": tmp_path / "weak"}
        weak = Kept(server.location("cell", options))
        weak.turn_after(0)
        assert weak.metric("etcd_file_bytes")
        assert logged(caplog) == []
        root.etcd.call("auth/user/revoke", {"name": "weak", "role": "root"})
        for _ in range(2):
            weak.turn_after(0)
        assert weak.maintenance.fullest is None
        assert weak.metric("etcd_file_bytes") is None
        assert weak.metric("etcd_compaction_failures_total") == 2
        assert len(logged(caplog)) == 2
        assert all("permission denied" in text for text in logged(caplog))
        root.turn_after(0)
        assert root.metric("etcd_file_bytes")


def test_the_fullest_member_is_reported_with_its_quota(tmp_path, server):
    with running_etcd(tmp_path, quota_bytes=QUOTA // 256) as small:
        both = Kept(server.location().replace(server.address, f"{server.address},{small.address}"))
        both.turn_after(0)
        assert both.metric("etcd_quota_bytes") == QUOTA // 256
        assert 0 < both.metric("etcd_in_use_bytes") <= both.metric("etcd_file_bytes") < QUOTA // 256
    # The quota of the settings counts for a member that does not report its own.
    one = Kept(server.location())
    one.turn_after(0)
    assert one.metric("etcd_quota_bytes") == QUOTA


def settings_of(folder, metadata):
    for name in ("dfs", "bucket"):
        (folder / name).mkdir()
    cell = CellSettings(metadata, folder / "dfs", str(folder / "bucket"), folder / "secret")
    broker = {"topics": {"offsets_partitions": 4}, "threads": {"runtime": 1}}
    loop = LoopSettings(folder / "keeper", scrape_interval_ms=50, stop_brokers_on_exit=True)
    return KeeperSettings(cell, loop, DriverSettings(), broker)


def test_a_cell_in_sqlite_has_none(tmp_path):
    settings = settings_of(tmp_path, str(tmp_path / "metadata.sqlite"))
    lease = make_lease(settings)
    assert lease is None
    assert make_maintenance(settings, Metrics(), SteadyClock(), lease) is None


def page(keeper):
    with urllib.request.urlopen(f"http://{keeper.metrics}/metrics", timeout=LIMIT_S) as answer:
        return dict(
            line.split() for line in answer.read().decode().splitlines() if line.count(" ") == 1
        )


def until(holds):
    deadline = time.monotonic() + LIMIT_S
    while not (value := holds()):
        assert time.monotonic() < deadline
    return value


def test_clusters_are_served_while_their_history_goes(tmp_path):
    with running_etcd(tmp_path) as server:
        settings = settings_of(tmp_path, server.location())
        loop = replace(settings.keeper, etcd_compaction_interval_ms=50)
        cell = Cell(settings.cell.metadata)

        def runs(cluster_id):
            status = cell.store.status(cluster_id)
            return status is not None and status.phase == "running"

        try:
            with KeeperServer(replace(settings, keeper=loop)) as keeper:

                def compactions():
                    return float(page(keeper)["freshet_keeper_etcd_compactions_total"])

                for cluster_id in ("cl_a", "cl_b"):
                    before = compactions()
                    until(lambda past=before: compactions() >= past + 3)
                    cell.want(cluster_id)
                    cell.wake(cluster_id)
                    until(lambda name=cluster_id: runs(name))
                health = until(
                    lambda: (seen := health_of(cell.store)) and seen.etcd_file_bytes and seen
                )
                assert 0 < health.etcd_in_use_bytes <= health.etcd_file_bytes
                assert health.etcd_quota_bytes == settings.keeper.etcd_quota_bytes
                assert float(page(keeper)["freshet_keeper_etcd_file_bytes"]) > 0
        finally:
            kill_survivors(settings.keeper.folder / "run")
