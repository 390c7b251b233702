"""The metadata of a cell and its clusters from Python, while no broker runs."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.errors import (
    BrokerError,
    CompactedError,
    ConflictError,
    CorruptError,
    ExistsError,
    InvalidError,
    MetadataError,
    NotFoundError,
    TooLargeError,
)
from brokers.etcd import Etcd
from brokers.locations import metadata_location
from brokers.metadata import (
    Acl,
    BrokerStatus,
    CellNote,
    CellStore,
    Change,
    ClusterSpec,
    ClusterStatus,
    ClusterStore,
    User,
)

# Far beyond what anything here takes; a test that reaches it fails.
TIMEOUT_S = 60

SPEC = ClusterSpec(
    id="cl_1",
    name="orders",
    organization_id="org_1",
    generation=1,
    state="active",
    scale=1,
    idle_timeout_ms=300_000,
    ports=(9092,),
    host="orders-1a",
    connections_max=1000,
    wakes_per_minute_max=6,
)
BROKER = BrokerStatus(slot=0, link="127.0.0.1:1", kafka="127.0.0.1:2", metrics="127.0.0.1:3", pid=4)
STATUS = ClusterStatus(
    observed_generation=1, phase="running", since_ms=5, brokers=(BROKER,), connections=2
)
ACL = Acl(resource_type="TOPIC", resource_name="orders", principal="User:alice", operation="READ")


@pytest.fixture(params=["sqlite", pytest.param("etcd", marks=pytest.mark.full("stores"))])
def location(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/metadata.sqlite"
    return request.getfixturevalue("etcd_server").location()


@pytest.fixture
def cell(location):
    return CellStore(location)


def all_bytes(location):
    """All bytes of the store's files."""
    place = metadata_location(location)
    if isinstance(place, Path):
        return b"".join(file.read_bytes() for file in place.parent.iterdir())
    return b"".join(entry.value for entry in Etcd(place).range("").entries)


@pytest.fixture
def cluster(cell):
    store = cell.cluster("cl_1")
    store.create()
    return store


def run(location, script):
    """Starts a process that has the store as `cell`."""
    setup = "import sys\nfrom brokers.metadata import *\ncell = CellStore(sys.argv[1])\n"
    command = [sys.executable, "-c", setup + textwrap.dedent(script), location]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process):
    output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    return output


def test_spec_comes_back_and_never_grows_older(cell):
    assert cell.spec("cl_1") is None
    first = cell.put_spec(SPEC)
    newer = replace(SPEC, generation=3, state="suspended", ports=(9092, 9093))
    second = cell.put_spec(newer)
    assert second > first
    with pytest.raises(ConflictError) as refused:
        cell.put_spec(replace(SPEC, generation=2))
    assert refused.value.kind == "conflict"
    assert cell.spec("cl_1") == newer
    assert cell.spec("cl_1").revision == second
    again = replace(newer, connections_max=5)
    cell.put_spec(again)
    assert cell.specs() == {"cl_1": again}
    assert cell.specs().revision == cell.spec("cl_1").revision
    assert cell.remove_spec("cl_1")
    assert not cell.remove_spec("cl_1")
    assert cell.specs() == {}


def test_spec_says_when_the_cluster_was_deleted(cell):
    spec = replace(SPEC, deletions=((10, 20), (30, None)))
    cell.put_spec(spec)
    assert cell.spec("cl_1") == spec
    with pytest.raises(InvalidError):
        cell.put_spec(replace(spec, deletions=((10, None), (30, None))))


def test_topics_history_says_what_earlier_rules_excluded(cluster):
    cluster.create_topic("t", configs={"retention.ms": "1000"})
    (topic,) = cluster.topics_history()
    assert (topic.retention_since_ms, topic.retention_before, topic.excluded) == (0, None, ())
    cluster.alter_topic_configs("t", {"max.message.bytes": "2000"})
    assert cluster.topics_history() == [topic]
    cluster.alter_topic_configs("t", {"retention.ms": "-1", "retention.bytes": "70"})
    (changed,) = cluster.topics_history()
    assert (changed.retention_ms, changed.retention_bytes) == (None, 70)
    assert changed.retention_before == (1000, None)
    assert topic.created_at_ms <= changed.retention_since_ms <= time.time_ns() // 1_000_000
    (excluded,) = changed.excluded
    assert (excluded.since_ms, excluded.until_ms) == (
        topic.created_at_ms,
        changed.retention_since_ms,
    )
    assert (excluded.older_than_ms, excluded.bytes) == (excluded.until_ms - 1000, None)


def test_topics_history_has_raises_and_deleted_topics(cluster):
    made = cluster.create_topic("orders", partitions=2, configs={"retention.bytes": "1000"})
    cluster.create_partitions("orders", 5)
    cluster.create_topic("keys", configs={"cleanup.policy": "compact"})
    cluster.delete_topic("orders")
    cluster.purge_topic(made.id)
    again = cluster.create_topic("orders", configs={"retention.ms": "-1"})
    assert cluster.lanes() == []
    topics = cluster.topics_history()
    history = {(topic.name, topic.deleted_at_ms is None): topic for topic in topics}
    gone = history["orders", False]
    assert gone.created_at_ms == made.created_at_ms <= gone.deleted_at_ms
    assert [count for _, count in gone.partition_counts] == [2, 5]
    assert gone.partition_counts[0][0] == made.created_at_ms <= gone.partition_counts[1][0]
    assert (gone.retention_bytes, gone.internal, gone.compacted) == (1000, False, False)
    assert gone.retention_ms == 7 * 24 * 3_600_000
    alive = history["orders", True]
    assert (alive.retention_ms, alive.retention_bytes) == (None, None)
    assert alive.partition_counts == ((again.created_at_ms, 1),)
    assert len(alive.id) == 32
    assert alive.id != gone.id
    compacted = history["keys", True]
    assert (compacted.compacted, compacted.retention_ms) == (True, None)
    assert len(history) == 3


def test_status_and_notes_come_back(cell):
    assert cell.status("cl_1") is None
    revision = cell.put_status("cl_1", STATUS)
    assert cell.put_status("cl_1", STATUS) == revision
    assert cell.status("cl_1") == STATUS
    asleep = ClusterStatus(observed_generation=2, phase="asleep", since_ms=6)
    cell.put_status("cl_2", asleep)
    assert cell.statuses() == {"cl_1": STATUS, "cl_2": asleep}
    content = {"groups": [{"group": "g", "lag_seconds": 1.5}], "topics": {"t": {"bytes": 2**40}}}
    cell.put_removal("cl_1", content)
    assert not cell.add_removal("cl_1", {"other": 1})
    assert cell.removal("cl_1") == CellNote(content=content)
    assert cell.removal("cl_2") is None
    with pytest.raises(TooLargeError):
        cell.put_removal("cl_1", {"groups": "x" * 2**20})
    cell.put_health("keeper", {"held": False})
    assert cell.health("keeper") == CellNote(content={"held": False})
    assert cell.remove_cluster("cl_1")
    assert (cell.status("cl_1"), cell.removal("cl_1")) == (None, None)
    assert cell.status("cl_2") == asleep


def test_wake_request_is_made_once_and_removed_as_seen(cell):
    first = cell.request_wake("cl_1", requested_at_ms=1, by="gateway")
    assert cell.request_wake("cl_1", requested_at_ms=2, by="console") == first
    assert cell.wakes() == {"cl_1": first}
    assert cell.remove_wake("cl_1", cell.wakes()["cl_1"].revision)
    second = cell.request_wake("cl_1", requested_at_ms=3, by="console")
    assert not cell.remove_wake("cl_1", first.revision)
    assert cell.wake("cl_1") == second


def test_watch_is_woken_by_another_process_and_misses_nothing(cell, location):
    revision = cell.specs().revision
    script = """
        sys.stdin.readline()
        for at in range(3):
            cell.request_wake(f"cl_{at}", requested_at_ms=at, by="gateway")
            cell.put_status(f"cl_{at}", ClusterStatus(observed_generation=1, phase="asleep",
                                                      since_ms=at))
            cell.put_removal(f"cl_{at}", {})
    """
    other = run(location, script)
    assert cell.watch(("spec/", "wake/"), revision, 0) == []
    other.stdin.write("go\n")
    other.stdin.flush()
    seen: list[Change] = []
    while len(seen) < 3:
        changes = cell.watch(("spec/", "wake/"), revision, TIMEOUT_S)
        assert changes
        seen += changes
        revision = changes[-1].revision
    finish(other)
    assert [(change.kind, change.cluster_id) for change in seen] == [
        ("wake", f"cl_{at}") for at in range(3)
    ]
    assert [change.record for change in seen] == [cell.wake(f"cl_{at}") for at in range(3)]
    cell.remove_cluster("cl_0")
    (change,) = cell.watch(("spec/", "wake/"), revision, TIMEOUT_S)
    assert (change.kind, change.cluster_id, change.record) == ("wake", "cl_0", None)
    # Nothing else of these kinds happened.
    assert cell.watch(("spec/", "wake/"), change.revision, 0) == []
    with pytest.raises(InvalidError):
        cell.watch("colour/", 0, 0)


def test_watch_takes_up_where_any_revision_stands(cell):
    cell.put_spec(SPEC)
    cell.put_status("cl_1", STATUS)
    everything = cell.watch("", 0, TIMEOUT_S)
    assert [change.record for change in everything] == [SPEC, STATUS]
    only = cell.watch("status/", 0, TIMEOUT_S)
    assert [change.record for change in only] == [STATUS]


def test_a_watch_behind_a_restored_file_gets_an_error(tmp_path):
    """It came from a backup. A revision of etcd never goes back."""
    cell = CellStore(tmp_path / "metadata.sqlite")
    revision = cell.put_spec(SPEC)
    with pytest.raises(CompactedError):
        cell.watch("", revision + 1000, TIMEOUT_S)


def test_watch_of_another_thread_is_interrupted(cell):
    with ThreadPoolExecutor(1) as pool:
        started = threading.Event()

        def watch():
            started.set()
            return cell.watch("", 0, TIMEOUT_S)

        waiting = pool.submit(watch)
        started.wait(TIMEOUT_S)
        while not waiting.done():
            # It may not have begun to wait yet.
            cell.interrupt()
        assert waiting.result() == []


def test_watch_ends_with_a_signal(location):
    script = f"""
        try:
            print("waiting", flush=True)
            cell.watch("", 0, {TIMEOUT_S})
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = run(location, script)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert finish(process) == "interrupted\n"


def test_writers_of_several_processes_lose_nothing(cell, location):
    cluster = cell.cluster("cl_1")
    cluster.create()
    script = """
        store = cell.cluster("cl_1")
        spec = cell.spec("cl_1")
        name = sys.stdin.readline().strip()
        import dataclasses
        from brokers.errors import ConflictError
        for generation in range(2, 22):
            try:
                cell.put_spec(dataclasses.replace(spec, generation=generation, name=name))
            except ConflictError:
                pass
            store.create_topic(f"{name}-{generation}", partitions=2)
            store.alter_topic_configs("shared", {name: str(generation)})
    """
    cell.put_spec(SPEC)
    cluster.create_topic("shared")
    names = ("segment.ms", "retention.bytes", "delete.retention.ms")
    writers = [run(location, script) for _ in names]
    for writer, name in zip(writers, names, strict=True):
        writer.stdin.write(f"{name}\n")
        writer.stdin.flush()
    for writer in writers:
        finish(writer)
    assert cell.spec("cl_1").generation == 21
    made = {topic.name for topic in cluster.topics()}
    assert made == {f"{name}-{at}" for name in names for at in range(2, 22)} | {"shared"}
    assert cluster.topic("shared").configs == dict.fromkeys(names, "21")


def test_store_goes_on_after_a_fork(location):
    script = """
        import os
        cell.request_wake("cl_1", requested_at_ms=1, by="parent")
        cluster = cell.cluster("cl_1")
        cluster.create()
        child = os.fork()
        if child == 0:
            cell.request_wake("cl_2", requested_at_ms=2, by="child")
            cluster.create_topic("of-the-child")
            assert [change.cluster_id for change in cell.watch("wake/", 0, 30)] == ["cl_1", "cl_2"]
            os._exit(0)
        _, status = os.waitpid(child, 0)
        cluster.create_topic("of-the-parent")
        print(status, sorted(cell.wakes()), [topic.name for topic in cluster.topics()])
    """
    expected = "0 ['cl_1', 'cl_2'] ['of-the-child', 'of-the-parent']\n"
    assert finish(run(location, script)) == expected


def test_cluster_is_made_once_and_shows_no_secret(cell):
    store = cell.cluster("cl_1")
    with pytest.raises(NotFoundError):
        store.record()
    with pytest.raises(NotFoundError):
        store.create_topic("orders")
    record = store.create(scale=2)
    assert (len(record.cluster_id), record.scale) == (22, 2)
    assert store.create() == store.record() == record
    assert store.create(record.cluster_id) == record
    with pytest.raises(ConflictError):
        store.create("AAAAAAAAAAAAAAAAAAAAAA")
    with pytest.raises(InvalidError) as refused:
        cell.cluster("cl_2").create("short")
    assert refused.value.field == "cluster_id"
    assert store.set_scale(3).scale == 3
    answer = json.loads(store._handle().call('{"call": "record"}'))
    assert sorted(answer) == ["cluster_id", "created_at_ms", "scale"]


def test_topics_are_made_changed_and_removed(cluster):
    made = cluster.create_topic(
        "orders", partitions=3, replication_factor=2, configs={"retention.ms": "60000"}
    )
    assert (made.partitions, made.partitions_led, made.replication_factor) == (3, 0, 2)
    assert (len(made.id), made.internal, made.configs) == (22, False, {"retention.ms": "60000"})
    plain = cluster.create_topic("audit")
    assert (plain.partitions, plain.replication_factor) == (1, 1)
    assert cluster.topics() == [plain, made]
    assert cluster.topic("orders") == made
    assert [(p.partition, p.leader) for p in cluster.partitions("orders")] == [
        (at, None) for at in range(3)
    ]
    altered = cluster.alter_topic_configs(
        "orders", {"retention.ms": None, "cleanup.policy": "compact"}
    )
    assert altered.configs == {"cleanup.policy": "compact"}
    tried = cluster.alter_topic_configs("orders", {"retention.ms": "1"}, validate_only=True)
    assert tried.configs == {"cleanup.policy": "compact", "retention.ms": "1"}
    assert cluster.create_partitions("orders", 200).partitions == 200
    assert cluster.topic("orders") == replace(altered, partitions=200)
    assert cluster.delete_topic("orders").id == made.id
    assert cluster.topics() == [plain]
    assert cluster.create_topic("orders").id != made.id


def field_of(call, *arguments, **named):
    """The field that an error names."""
    with pytest.raises(InvalidError) as refused:
        call(*arguments, **named)
    assert refused.value.kind == "invalid"
    return refused.value.field


@pytest.mark.parametrize("make", [ClusterStore.create_topic, ClusterStore.validate_topic])
@pytest.mark.parametrize(
    ("field", "topic"),
    [
        ("name", {"name": "a b"}),
        ("name", {"name": "__consumer_offsets"}),
        ("name", {"name": "taken_name"}),
        ("partitions", {"partitions": 0}),
        ("partitions", {"partitions": 10_001}),
        ("partitions", {"partitions": 2**40}),
        ("replication_factor", {"replication_factor": 0}),
        ("replication_factor", {"replication_factor": 4}),
        ("replication_factor", {"replication_factor": 2**15 - 1}),
        ("replication_factor", {"replication_factor": 2**20}),
        ("configs/colour", {"configs": {"colour": "red"}}),
        ("configs/a~1b", {"configs": {"a/b": "red"}}),
        ("configs/cleanup.policy", {"configs": {"retention.ms": "1", "cleanup.policy": "burn"}}),
        ("configs", {"configs": {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}}),
    ],
)
def test_what_a_topic_cannot_be_is_said(cluster, make, field, topic):
    taken = cluster.create_topic("taken.name")
    assert field_of(make, cluster, **{"name": "a", **topic}) == field
    assert cluster.topics() == [taken]
    with pytest.raises(ExistsError):
        make(cluster, "taken.name")


def test_what_a_topic_cannot_become_is_said(cluster):
    topic = cluster.create_topic("orders", partitions=2)
    assert cluster.validate_topic("c", partitions=2) == replace(
        topic, name="c", id="", created_at_ms=0
    )
    for total in (1, 2, 10_001, 2**40):
        assert field_of(cluster.create_partitions, "orders", total) == "partitions"
    alter = cluster.alter_topic_configs
    assert field_of(alter, "orders", {"colour": None}) == "configs/colour"
    both = {"retention.bytes": "1", "retention.ms": "x"}
    assert field_of(alter, "orders", both) == "configs/retention.ms"
    assert cluster.topics() == [topic]
    for missing in (
        lambda: cluster.topic("no"),
        lambda: cluster.partitions("no"),
        lambda: cluster.delete_topic("no"),
        lambda: cluster.create_partitions("no", 2),
        lambda: cluster.topic_configs("no"),
        lambda: cluster.wait_led("no", TIMEOUT_S),
        lambda: alter("no", {}),
    ):
        with pytest.raises(NotFoundError):
            missing()


def test_configs_of_a_topic_are_described(cell, cluster):
    cluster.create_topic("orders", configs={"retention.ms": "60000"})
    configs = {config.name: config for config in cluster.topic_configs("orders")}
    retention, policy = configs["retention.ms"], configs["cleanup.policy"]
    assert (retention.value, retention.default, retention.type) == ("60000", "604800000", "LONG")
    assert (retention.source, retention.is_default) == ("DYNAMIC_TOPIC_CONFIG", False)
    assert (policy.value, policy.source, policy.is_default) == ("delete", "DEFAULT_CONFIG", True)
    assert all(config.documentation for config in configs.values())
    assert list(configs) == sorted(configs)
    fresh = {config.name: config.value for config in cluster.topic_configs()}
    assert fresh["retention.ms"] == "604800000"
    given = cell.cluster("cl_1", {"log.retention.ms": "5", "num.partitions": "4"})
    described = {config.name: config for config in given.topic_configs()}
    assert described["retention.ms"].value == "5"
    assert described["retention.ms"].source == "STATIC_BROKER_CONFIG"
    assert given.create_topic("wide").partitions == 4
    with pytest.raises(InvalidError):
        cell.cluster("cl_1", {"log.retention.ms": "x"}).topics()


def test_acls_are_added_listed_and_removed(cluster):
    wide = replace(ACL, pattern_type="PREFIXED", operation="ALL", permission="DENY", host="::1")
    transactional = replace(ACL, resource_type="TRANSACTIONAL_ID", operation="DESCRIBE_CONFIGS")
    cluster.add_acls([ACL, wide, transactional])
    cluster.add_acls([ACL])
    assert sorted(cluster.list_acls()) == sorted([ACL, wide, transactional])
    cluster.remove_acls([wide, replace(ACL, host="::2")])
    assert sorted(cluster.list_acls()) == sorted([ACL, transactional])
    for change, field in (
        ({"resource_type": "GALAXY"}, "resource_type"),
        ({"resource_type": "ANY"}, "resource_type"),
        ({"resource_type": "CLUSTER"}, "resource_name"),
        ({"resource_name": ""}, "resource_name"),
        ({"pattern_type": "MATCH"}, "pattern_type"),
        ({"principal": "alice"}, "principal"),
        ({"host": ""}, "host"),
        ({"operation": "SING"}, "operation"),
        ({"permission": "PERHAPS"}, "permission"),
    ):
        with pytest.raises(InvalidError) as refused:
            cluster.add_acls([wide, replace(ACL, **change)])
        assert refused.value.field == f"acls/1/{field}"
    assert wide not in cluster.list_acls()


def test_users_have_passwords_that_nobody_sees(cluster, location):
    cluster.set_user("alice", "alice-secret")
    cluster.set_user("alice", "alice-secret", ["SCRAM-SHA-256"], iterations=8192)
    assert cluster.list_users() == [
        User(user="alice", mechanism="SCRAM-SHA-256", iterations=8192),
        User(user="alice", mechanism="SCRAM-SHA-512", iterations=4096),
    ]
    for arguments, field in (
        (("", "x"), "user"),
        (("a" * 256, "x"), "user"),
        (("bob", ""), "password"),
        (("bob", "x", ["PLAIN"]), "mechanisms"),
        (("bob", "x", ["SCRAM-SHA-256", "PLAIN"]), "mechanisms"),
        (("bob", "x", ["SCRAM-SHA-256"] * 2), "mechanisms"),
        (("bob", "x", []), "mechanisms"),
    ):
        with pytest.raises(InvalidError) as refused:
            cluster.set_user(*arguments)
        assert refused.value.field == field
    for iterations in (1, 2**40):
        with pytest.raises(InvalidError) as refused:
            cluster.set_user("bob", "x", iterations=iterations)
        assert refused.value.field == "iterations"
    assert cluster.remove_user("alice")
    assert not cluster.remove_user("alice")
    assert cluster.list_users() == []
    assert b"alice-secret" not in all_bytes(location)


def test_removal_leaves_other_clusters_alone(cell, cluster):
    other = cell.cluster("cl_10")
    other.create()
    other.create_topic("kept")
    for at in range(3):
        cluster.create_topic(f"t{at}", partitions=150)
    cluster.add_acls([ACL])
    cluster.set_user("alice", "alice-secret")
    assert cluster.remove_all() > 450
    assert cluster.remove_all() == 0
    assert (cluster.topics(), cluster.list_acls(), cluster.list_users()) == ([], [], [])
    with pytest.raises(NotFoundError):
        cluster.record()
    assert [topic.name for topic in other.topics()] == ["kept"]


def test_errors_are_of_one_family(tmp_path):
    path = tmp_path / "metadata.sqlite"
    cell = CellStore(path)
    for error in (NotFoundError, ExistsError, ConflictError, InvalidError, TooLargeError):
        assert issubclass(error, MetadataError)
    assert issubclass(MetadataError, BrokerError)
    kinds = {error.kind for error in MetadataError.__subclasses__()}
    assert kinds == {
        "compacted",
        "conflict",
        "corrupt",
        "exists",
        "invalid",
        "limit_reached",
        "not_found",
        "too_large",
        "unavailable",
        "unknown",
    }
    for name in ("cell", "", "a/b"):
        with pytest.raises(InvalidError) as refused:
            cell.cluster(name).topics()
        assert refused.value.field == "cluster"
    with pytest.raises(InvalidError):
        cell.put_spec(replace(SPEC, host="Not a label"))
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"not a database" * 100)
    with pytest.raises(CorruptError):
        CellStore(other).specs()
    with pytest.raises(MetadataError):
        CellStore(tmp_path / "missing" / "metadata.sqlite").specs()
    cell.put_spec(SPEC)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE entry SET value = ?", (b'{"v":2}',))
    with pytest.raises(CorruptError, match="newer release"):
        cell.spec("cl_1")
    database.close()


def test_threads_share_a_store(cell, cluster):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: cluster.create_topic(f"t{at:02}"), range(40)))
        names = [topic.name for topic in cluster.topics()]
        assert names == [f"t{at:02}" for at in range(40)]
    assert os.getpid() == cell._process
