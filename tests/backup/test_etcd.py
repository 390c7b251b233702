"""Metadata in etcd in a backup: one revision of it, put back as a whole."""

import signal
import threading

import pytest

from brokers.errors import NotFoundError
from brokers.etcd import Etcd
from brokers.locations import EtcdLocation, metadata_location
from brokers.metadata import CellStore
from brokers.secrets import create_cell_secret
from console.programs.backup import etcd as copies
from console.programs.backup.errors import BackupError
from console.programs.backup.etcd import EtcdMetadata
from console.programs.backup.metadata import metadata_store
from provisioning.cell.keeper.lease import KeeperLease
from tests.etcd import running_etcd

pytestmark = pytest.mark.full("stores")

STAMP = "20261122t030000z"


@pytest.fixture
def secret(tmp_path):
    create_cell_secret(tmp_path / "secret")
    return tmp_path / "secret"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "backup").mkdir()
    return tmp_path / "backup"


@pytest.fixture
def location(etcd_server):
    return etcd_server.location()


@pytest.fixture
def store(location, secret):
    store = metadata_store(location, secret)
    assert isinstance(store, EtcdMetadata)
    return store


def etcd_client(location):
    place = metadata_location(location)
    assert isinstance(place, EtcdLocation)
    return Etcd(place)


def contents_of(location):
    return {entry.key: entry.value for entry in etcd_client(location).range("").entries}


def create_topics(location, *names):
    cluster = CellStore(location).cluster("cl_1")
    cluster.create()
    for name in names:
        cluster.create_topic(name)
    return {topic.name for topic in cluster.topics()}


def test_what_was_copied_is_put_back(store, location, folder, secret, monkeypatch):
    monkeypatch.setattr(copies, "BATCH_KEYS", 3)
    create_topics(location, "a", "b", "c")
    before = contents_of(location)
    facts = store.copy(folder)
    assert (facts.kind, facts.version, facts.copy.name) == ("etcd", 1, "metadata.etcd")
    assert (folder / facts.copy.name).stat().st_mode & 0o777 == 0o600
    create_topics(location, "young")
    younger = contents_of(location)
    store.check(facts)
    store.stage(folder, facts)
    assert contents_of(location) == younger
    kept = store.install_staged(STAMP)
    assert contents_of(location) == before
    assert create_topics(location) == {"a", "b", "c"}
    assert kept == secret.with_name(f"metadata.etcd.before-{STAMP}")
    assert {entry.key: entry.value for entry in copies._read_copy(kept)[1]} == younger


def test_a_copy_is_one_moment_while_others_write(store, location, folder):
    etcd, stop = etcd_client(location), threading.Event()

    def keep_writing():
        number = 0
        while not stop.is_set():
            number += 1
            etcd.write({"a": b"%d" % number, "z": b"%d" % number})

    etcd.write({f"k/{number:04}": b"x" * 100 for number in range(100)})
    etcd.write({"a": b"0", "z": b"0"})
    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        facts = [store.copy(folder_of(folder, number)) for number in range(5)]
    finally:
        stop.set()
        writer.join()
    for number, fact in enumerate(facts):
        _, entries = copies._read_copy(folder / str(number) / fact.copy.name)
        values = {entry.key: entry.value for entry in entries}
        assert values["a"] == values["z"]
        assert len(values) == 102


def folder_of(folder, number):
    (folder / str(number)).mkdir()
    return folder / str(number)


def test_a_cell_whose_lease_a_keeper_holds_is_in_use(store, location, folder):
    create_topics(location, "a")
    lease = KeeperLease(etcd_client(location), 60)
    assert lease.try_acquire("now") is None
    facts = store.copy(folder)
    _, entries = copies._read_copy(folder / facts.copy.name)
    assert all(entry.key != "keeper/lease" for entry in entries)
    with pytest.raises(BackupError, match="lease"):
        store.users()
    lease.release()
    assert store.users() == []


def test_an_empty_etcd_is_filled(folder, tmp_path, secret, store, location):
    create_topics(location, "a")
    facts = store.copy(folder)
    (tmp_path / "other").mkdir()
    with running_etcd(tmp_path / "other") as server:
        server.guard()
        place = server.as_root("cell")
        new = metadata_store(place, secret)
        new.stage(folder, facts)
        assert new.install_staged(STAMP) is None
        assert contents_of(place) == contents_of(location)
        users = etcd_client(place).call("auth/user/list", {})["users"]
        assert sorted(users) == ["cl_1", "root"], (
            "the brokers of clusters that came back may sign in"
        )


def test_a_copy_of_another_kind_or_not_whole_is_refused(store, location, folder, tmp_path, secret):
    create_topics(location, "a")
    facts = store.copy(folder)
    sqlite = metadata_store(f"sqlite://{tmp_path}/metadata.sqlite", secret)
    with pytest.raises(BackupError, match="of etcd"):
        sqlite.check(facts)
    file = folder / facts.copy.name
    whole = file.read_text().splitlines(keepends=True)
    for damaged in ("".join(whole[:-1]), "", "no JSON\n", "".join(whole).replace('"key"', '"k"')):
        file.write_text(damaged)
        with pytest.raises(BackupError, match="copy"):
            store.stage(folder, facts)


def test_an_etcd_that_does_not_answer_is_named(tmp_path, folder, secret):
    (tmp_path / "server").mkdir()
    with running_etcd(tmp_path / "server") as server:
        store = metadata_store(server.location(), secret)
        server.stop(signal.SIGKILL)
        with pytest.raises(BackupError, match=r"cell\.metadata"):
            store.copy(folder)


def test_entries_written_after_the_copy_are_gone_after_a_restore(store, location, folder):
    facts = store.copy(folder)
    create_topics(location, "young")
    store.stage(folder, facts)
    store.install_staged(STAMP)
    with pytest.raises(NotFoundError):
        CellStore(location).cluster("cl_1").record()
