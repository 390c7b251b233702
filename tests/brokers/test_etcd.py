"""A real etcd from Python: results when it answers, and errors when it does not."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers import Broker
from brokers.errors import InvalidError, MetadataError, UnavailableError, UnknownOutcomeError
from brokers.etcd import Etcd
from brokers.etcd_access import allow_cluster, forbid_cluster
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import CellStore
from tests.etcd import EtcdServer, running_etcd
from tests.ports import free_ports

pytestmark = pytest.mark.full("stores")

ROOT_PASSWORD = "of-the-cell"


def client(location, **options):
    place = metadata_location(location)
    assert isinstance(place, EtcdLocation)
    return Etcd(place, **options)


@pytest.fixture
def etcd(etcd_server):
    return client(etcd_server.location())


def contents(etcd, prefix=""):
    return {entry.key: entry.value for entry in etcd.range(prefix).entries}


def test_a_key_is_made_once(etcd):
    assert etcd.get("a") is None
    assert etcd.create("a", b"1") is True
    assert etcd.create("a", b"2") is False
    entry = etcd.get("a")
    assert (entry.key, entry.value, entry.lease) == ("a", b"1", 0)


def test_a_range_is_one_revision_however_many_pages(etcd, monkeypatch):
    monkeypatch.setattr("brokers.etcd.PAGE_KEYS", 3)
    written = {f"k/{number}": b"%d" % number for number in range(10)}
    etcd.write(written)
    etcd.create("l", b"")
    first = etcd.range("k/")
    assert {entry.key: entry.value for entry in first.entries} == written
    assert etcd.remove("k/") == 10
    assert etcd.range("k/", revision=first.revision) == first
    assert contents(etcd) == {"l": b""}


def test_roots_do_not_see_each_other(etcd_server):
    one, longer = (client(etcd_server.location(root)) for root in ("roots/a", "roots/ab"))
    one.create("k", b"1")
    longer.create("k", b"2")
    assert (contents(one), contents(longer)) == ({"k": b"1"}, {"k": b"2"})
    assert one.remove("") == 1
    assert contents(longer) == {"k": b"2"}


def test_a_key_goes_with_its_lease(etcd):
    lease = etcd.grant_lease(60)
    assert etcd.create("leased", b"", lease=lease)
    assert etcd.keep_lease(lease)
    for _ in range(2):
        etcd.revoke_lease(lease)
        assert etcd.get("leased") is None
        assert not etcd.keep_lease(lease)


def test_another_member_is_asked_where_one_is_away(etcd_server):
    members = (f"127.0.0.1:{free_ports(1)[0]}", etcd_server.address)
    etcd = client(etcd_server.location().replace(etcd_server.address, ",".join(members)))
    assert etcd.create("a", b"1") is True
    assert contents(etcd) == {"a": b"1"}


def test_what_is_not_known_is_said(tmp_path):
    with running_etcd(tmp_path) as server:
        etcd = client(server.location(), timeout_s=0.5)
        etcd.create("a", b"1")
        server.pause()
        with pytest.raises(UnavailableError):
            etcd.get("a")
        with pytest.raises(UnknownOutcomeError):
            etcd.create("b", b"2")
        server.unpause()
        server.stop()
        with pytest.raises(UnavailableError):
            etcd.create("c", b"3")
        server.start()
        assert client(server.location("cell-0")).get("a").value == b"1"


def test_history_goes_once_and_what_there_is_stays(tmp_path):
    with running_etcd(tmp_path) as server:
        etcd = client(server.location())
        revisions = []
        for value in (b"1", b"2", b"3"):
            etcd.write({"a": value})
            revisions.append(etcd.get("a").revision)
        assert etcd.compact(revisions[1]) is True
        # Repeated, or behind what somebody else dropped, it is no error.
        assert [etcd.compact(revision) for revision in revisions[:2]] == [False, False]
        with pytest.raises(InvalidError, match="compacted"):
            etcd.range("a", revision=revisions[0])
        assert etcd.range("a", revision=revisions[1]).entries[0].value == b"2"
        assert contents(etcd) == {"a": b"3"}
        with pytest.raises(InvalidError, match="future"):
            etcd.compact(revisions[2] + 1)


def fill(etcd, quota_bytes):
    """Writes until it is refused: etcd learns the size of its file at each tenth of a second."""
    for _ in range(10_000):
        etcd.write({"a": bytes(quota_bytes // 8)})


def test_a_member_reports_how_full_it_is(tmp_path):
    quota_bytes = 1 << 20
    with running_etcd(tmp_path, quota_bytes=quota_bytes) as server:
        etcd = client(server.location())
        status = etcd.status()
        assert 0 < status.in_use_bytes <= status.file_bytes < quota_bytes
        assert (status.quota_bytes, status.out_of_space) == (quota_bytes, False)
        with pytest.raises(InvalidError, match="space exceeded"):
            fill(etcd, quota_bytes)
        status = etcd.status()
        assert status.out_of_space
        # What helps is not refused: dropping history, and a smaller file.
        dropped = etcd.get("a").revision - 1
        assert etcd.compact(dropped)
        # Waits until it is done.
        etcd.call("kv/compaction", {"revision": dropped + 1, "physical": True})
        etcd.call("maintenance/defragment", {})
        assert etcd.status().file_bytes < status.file_bytes


@dataclass(frozen=True)
class Guarded:
    """A cell of two clusters in an etcd that requires users and passwords."""

    server: EtcdServer
    folder: Path
    root: str

    @property
    def location(self) -> str:
        return self.server.as_root(self.root)

    def as_brokers_of(self, name: str) -> str:
        return self.as_user(name, self.folder / name)

    def as_user(self, name: str, file: Path) -> str:
        return self.server.location(self.root, {"user": name, "password_file": file})


@pytest.fixture
def guarded(guarded_etcd, tmp_path):
    cell = Guarded(guarded_etcd, tmp_path, tmp_path.name)
    etcd = client(cell.location)
    for name in ("cl_a", "cl_b"):
        allow_cluster(etcd, name, f"password of {name}")
        (tmp_path / name).write_text(f"password of {name}\n")
        CellStore(cell.location).cluster(name).create()
    yield cell
    for name in ("cl_a", "cl_b"):
        forbid_cluster(etcd, name)


def test_brokers_need_their_own_keys_and_no_others(guarded, tmp_path):
    metadata = guarded.as_brokers_of("cl_a")
    with Broker(tmp_path, storage={"metadata": metadata, "cluster": "cl_a"}):
        store = CellStore(metadata).cluster("cl_a")
        store.create_topic("orders", partitions=3)
        assert store.wait_led("orders", 60)
        assert [partition.leader for partition in store.partitions("orders")] == [0, 0, 0]
    assert [lane.state for lane in store.lanes()] == ["closed"]


def test_a_tenants_brokers_neither_read_nor_write_anothers_keys(guarded):
    root, tenant = client(guarded.location), client(guarded.as_brokers_of("cl_a"))
    before = contents(root, "cl_b/")
    assert before
    assert contents(tenant, "cl_a/")
    for call in (
        lambda: tenant.range("cl_b/"),
        lambda: tenant.range("cl_a0"),
        lambda: tenant.range("cl_"),
        lambda: tenant.range(""),
        lambda: tenant.range("cell/"),
        lambda: tenant.get(next(iter(before))),
        lambda: tenant.create("cl_b/stolen", b""),
        lambda: tenant.create("cell/spec/cl_a", b""),
        lambda: tenant.create("keeper/lease", b""),
        lambda: tenant.create("", b""),
        lambda: tenant.remove("cl_b/"),
        lambda: tenant.call("auth/user/list", {}),
        tenant.status,
        lambda: tenant.call("auth/user/changepw", {"name": "cl_b", "password": "x"}),
    ):
        with pytest.raises(InvalidError, match="permission denied"):
            call()
    store = CellStore(guarded.as_brokers_of("cl_a"))
    for read in (store.cluster("cl_b").record, store.specs):
        with pytest.raises(MetadataError, match="permission denied"):
            read()
    assert contents(root, "cl_b/") == before


def test_who_is_not_known_reads_nothing(guarded, tmp_path):
    (tmp_path / "wrong").write_text("wrong")
    with pytest.raises(InvalidError, match="authentication failed"):
        client(guarded.as_user("cl_a", tmp_path / "wrong")).get("cl_a/cluster")
    for call in (lambda etcd: etcd.get("cl_a/cluster"), lambda etcd: etcd.range("")):
        with pytest.raises(InvalidError, match="user name is empty"):
            call(client(guarded.server.location(guarded.root)))


def test_a_user_goes_with_its_cluster_and_comes_again(guarded):
    root = client(guarded.location)
    (guarded.folder / "cl_c").write_text("first")
    allow_cluster(root, "cl_c", "first")
    brokers = client(guarded.as_brokers_of("cl_c"))
    assert brokers.create("cl_c/a", b"1")
    for _ in range(2):
        forbid_cluster(root, "cl_c")
        with pytest.raises(InvalidError):
            brokers.get("cl_c/a")
    for password in ("second", "third"):
        allow_cluster(root, "cl_c", password)
        (guarded.folder / "cl_c").write_text(password)
        assert client(guarded.as_brokers_of("cl_c")).get("cl_c/a").value == b"1"
    forbid_cluster(root, "cl_c")


def test_a_missing_password_is_said(guarded, tmp_path):
    with pytest.raises(UnavailableError, match="missing"):
        client(guarded.as_user("cl_a", tmp_path / "missing")).get("a")
