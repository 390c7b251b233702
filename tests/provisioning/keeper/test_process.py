"""The keeper as a process with the real metadata store, which is killed and started again."""

import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace

import pytest

from brokers.secrets import super_password
from brokers.settings.writing import settings_toml
from provisioning.cell.keeper.settings import (
    CellSettings,
    DriverSettings,
    KeeperSettings,
    LoopSettings,
)
from provisioning.kafka import SUPER_USER, Access, Clients, Connection
from tests.provisioning.kafka.clients import commit, create_topic, produce_records
from tests.provisioning.kafka.hostile import join_alone, log_in
from tests.provisioning.keeper.earlier import put_earlier_sample
from tests.provisioning.keeper.processes import CLUSTER, LIMIT_S, ROOT, Cell, KeeperServer, alive
from tests.provisioning.keeper.written import newest_written, written_after, written_files
from tests.provisioning.survivors import kill_survivors
from tests.supervisor.run import wait_until


@pytest.fixture
def settings(tmp_path):
    cell = CellSettings(
        str(tmp_path / "metadata.sqlite"),
        tmp_path / "dfs",
        str(tmp_path / "bucket"),
        tmp_path / "secret",
    )
    for name in ("dfs", "bucket"):
        (tmp_path / name).mkdir()
    loop = LoopSettings(
        tmp_path / "keeper",
        scrape_interval_ms=50,
        sample_interval_ms=100,
        sample_file_interval_ms=200,
        awake_min_ms=1,
    )
    broker = {
        "topics": {"offsets_partitions": 4},
        "groups": {"initial_rebalance_delay_ms": 0},
        "threads": {"runtime": 1},
    }
    return KeeperSettings(cell, loop, DriverSettings(backoff_quiet_ms=100), broker)


@pytest.fixture
def cell(settings):
    yield Cell(settings.cell.metadata)
    kill_survivors(settings.keeper.folder / "run")


def stopping(settings):
    return replace(settings, keeper=replace(settings.keeper, stop_brokers_on_exit=True))


def get(address, path):
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=LIMIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_brokers_go_on_when_their_keeper_is_killed(settings, cell):
    with KeeperServer(settings) as keeper:
        cell.want()
        cell.wake()
        first = cell.running()
        keeper.kill()
        assert alive(first)
        # The next keeper takes the broker over, and replaces it when it is killed.
        keeper.start()
        assert cell.running() == first
        os.kill(first, signal.SIGKILL)
        second = cell.running(other_than=first)
        # The keeper and its broker may also be killed together.
        keeper.kill()
        os.kill(second, signal.SIGKILL)
        keeper.start()
        third = cell.running(other_than=second)
        # A keeper that is asked to end leaves its brokers running, unless the settings say
        # otherwise.
        assert keeper.stop() == 0
        assert alive(third)
    with KeeperServer(stopping(settings)) as keeper:
        assert cell.running() == third
        assert keeper.stop() == 0
        assert not alive(third)
        assert cell.store.status(CLUSTER).phase == "asleep"


def test_a_broker_whose_keeper_died_before_writing_it_down_is_found(settings, cell):
    with KeeperServer(settings) as keeper:
        cell.want()
        cell.wake()
        first = cell.running()
        keeper.kill()
        (settings.keeper.folder / "run" / CLUSTER / "slot-0" / "state.json").unlink()
        keeper.start()
        assert cell.running() == first
        os.kill(first, signal.SIGKILL)
        cell.running(other_than=first)


def test_idle_asleep_wake(settings, cell):
    with KeeperServer(stopping(settings)):
        cell.want(idle_timeout_ms=300)
        cell.wake()
        first = cell.running()
        cell.until(lambda status: status.phase == "asleep")
        assert not alive(first)
        assert cell.store.wake(CLUSTER) is None
        sample = newest_written(settings.cell.bucket, CLUSTER)
        assert sample is not None
        assert sample.content["groups"] == []
        cell.wake()
        assert cell.running() != first


def test_groups_of_a_sleeping_cluster_are_in_its_sample(settings, cell):
    with KeeperServer(stopping(settings)):
        cell.want(idle_timeout_ms=600_000)
        cell.wake()
        cell.running()
        kafka = cell.store.status(CLUSTER).brokers[0].kafka
        secret = bytes.fromhex(settings.cell.secret.read_text())
        fall_behind(Connection(kafka, super_password(secret, CLUSTER)))
        cell.want(idle_timeout_ms=1, generation=2)
        asleep = cell.until(lambda status: status.phase == "asleep")
        sample = newest_written(settings.cell.bucket, CLUSTER)
        assert sample is not None
        assert sample.taken_at_ms <= asleep.since_ms
        (group,) = sample.content["groups"]
        assert group["group"] == "billing"
        (partition,) = group["partitions"]
        expected = {"topic": "orders", "partition": 0, "committed": 2, "end": 5, "lag": 3}
        assert expected.items() <= partition.items()
        bytes_in, bytes_out, records_in = sample.content["topics"]["orders"]
        assert records_in == 5
        assert bytes_in > 0
        assert bytes_out >= 0


def test_samples_of_an_earlier_release_are_moved_to_files(settings, cell):
    old = {"groups": [{"group": "billing", "lag": 3}], "topics": {"orders": [1, 2, 3]}}
    for name in (CLUSTER, "cl_b"):
        cell.want(name)
        put_earlier_sample(settings.cell.metadata, name, 1_700_000_000_000, old)
    with KeeperServer(settings):
        sample = written_after(settings.cell.bucket, CLUSTER, 0)
        assert sample.content == old
        assert sample.taken_at_ms == 1_700_000_000_000
        wait_until(lambda: not cell.store.samples(), "the records are removed")
    assert newest_written(settings.cell.bucket, "cl_b") == replace(sample, cluster_id="cl_b")
    # They came in one file, and an idle keeper writes none.
    assert len(list(written_files(settings.cell.bucket))) == 1


def test_a_group_that_no_library_decodes_ends_neither_keeper_nor_sample(settings, cell):
    with KeeperServer(settings) as keeper:
        cell.want(idle_timeout_ms=600_000)
        cell.wake()
        cell.running()
        kafka = cell.store.status(CLUSTER).brokers[0].kafka
        password = super_password(bytes.fromhex(settings.cell.secret.read_text()), CLUSTER)
        fall_behind(Connection(kafka, password))
        with closing(log_in(kafka, SUPER_USER, password)) as raw:
            join_alone(raw, "one-byte", b"\x00")
            join_alone(raw, "json", b'{"partitions": [1]}')
            joined_ms = time.time_ns() // 1_000_000
            sample = written_after(settings.cell.bucket, CLUSTER, joined_ms)
        groups = {group["group"]: group for group in sample.content["groups"]}
        assert {name: group["state"] for name, group in groups.items()} == {
            "billing": "Empty",
            "json": "Stable",
            "one-byte": "Stable",
        }
        assert groups["billing"]["lag"] == 3
        assert keeper.process is not None
        assert keeper.process.poll() is None


def fall_behind(connection):
    """Creates a group that has read two of five records."""
    access = Access(Clients(), connection)
    create_topic(access, "orders", 1)
    produce_records(access, "orders", [(0, b"x", 1_700_000_000_000)] * 5)
    commit(access, "billing", {("orders", 0): 2})


def test_suspended_and_deleted(settings, cell):
    with KeeperServer(stopping(settings)):
        cell.want()
        cell.wake()
        first = cell.running()
        cell.want(state="suspended", generation=2)
        cell.until(lambda status: status.phase == "asleep" and status.observed_generation == 2)
        assert not alive(first)
        cell.want(generation=3)
        cell.wake()
        second = cell.running(other_than=first)
        cell.want(state="deleted", generation=4)
        cell.until(lambda status: status.phase == "asleep" and status.observed_generation == 4)
        assert not alive(second)


def test_a_locked_metadata_store_delays_nothing(settings, cell):
    with KeeperServer(stopping(settings)) as keeper:
        cell.want()
        cell.wake()
        first = cell.running()
        with sqlite3.connect(settings.cell.metadata, isolation_level=None) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            os.kill(first, signal.SIGKILL)
            second = until_pid(settings, other_than=first)
            assert alive(second)
            connection.execute("ROLLBACK")
        connection.close()
        assert cell.running(other_than=first) == second
        assert get(keeper.metrics, "/healthz")[0] == 200


def test_a_record_that_cannot_be_read_stops_nobody(settings, cell):
    with KeeperServer(stopping(settings)) as keeper:
        cell.want()
        cell.wake()
        first = cell.running()
        damage(settings.cell.metadata, f"spec/{CLUSTER}")
        cell.want("cl_b")
        until_unwell(keeper)
        os.kill(first, signal.SIGKILL)
        assert alive(until_pid(settings, other_than=first))


def test_a_second_keeper_stands_by_and_takes_over(settings, cell):
    with KeeperServer(settings) as first:
        cell.want()
        cell.wake()
        pid = cell.running()
        refusing = replace(settings, keeper=replace(settings.keeper, standby=False))
        refused = KeeperServer(refusing, "refused")
        refused.start(wait=False)
        assert refused.wait() == 1
        assert f"pid {first.pid}" in refused.log.read_text()
        second = KeeperServer(stopping(settings), "second")
        second.start(wait=False)
        first.kill()
        second.wait_ready()
        try:
            assert cell.running() == pid
            assert "freshet_keeper_leading 1.0" in get(second.metrics, "/metrics")[1]
            runs = 'freshet_keeper_clusters{phase="running"} 1.0'
            wait_for(lambda: runs in get(second.metrics, "/metrics")[1] or None)
        finally:
            assert second.stop() == 0
        assert not alive(pid)


def test_all_brokers_stop_at_once(settings, cell):
    names = [f"cl_{number}" for number in range(4)]
    with KeeperServer(stopping(settings)) as keeper:
        for name in names:
            cell.want(name)
            cell.wake(name)
        pids = [cell.running(name) for name in names]
        assert keeper.stop() == 0
        assert not any(alive(pid) for pid in pids)
        assert {cell.store.status(name).phase for name in names} == {"asleep"}


def test_the_super_user_reaches_the_broker_and_nobody_else_does(settings, cell):
    with KeeperServer(stopping(settings)):
        cell.want()
        cell.wake()
        cell.running()
        kafka = cell.store.status(CLUSTER).brokers[0].kafka
        secret = bytes.fromhex(settings.cell.secret.read_text())
        assert authenticates(kafka, super_password(secret, CLUSTER))
        assert not authenticates(kafka, super_password(secret, "cl_other"))


def authenticates(bootstrap, password):
    """Whether SASL/PLAIN as the super user is accepted (SaslHandshake 1, SaslAuthenticate 0)."""
    host, port = bootstrap.rsplit(":", 1)
    token = f"\0__freshet\0{password}".encode()
    with socket.create_connection((host, int(port)), LIMIT_S) as connection:
        assert request(connection, 17, 1, struct.pack(">h5s", 5, b"PLAIN"))[:2] == b"\0\0"
        answer = request(connection, 36, 0, struct.pack(">i", len(token)) + token)
        return answer[:2] == b"\0\0"


def request(connection, key, version, body):
    """Sends a Kafka request. Returns the body of its answer."""
    frame = struct.pack(">hhih", key, version, 1, -1) + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    with connection.makefile("rb") as stream:
        (length,) = struct.unpack(">i", stream.read(4))
        return stream.read(length)[4:]


def until_pid(settings, *, other_than):
    """Waits for the process that the keeper started in place of another one. Returns its pid."""
    state = settings.keeper.folder / "run" / CLUSTER / "slot-0" / "state.json"
    return wait_for(lambda: pid_in(state, other_than))


def pid_in(state, other_than):
    try:
        pid = int(state.read_text().split('"pid": ')[1].split(",")[0])
    except (OSError, IndexError):
        return None
    return pid if pid != other_than else None


def until_unwell(keeper):
    return wait_for(lambda: get(keeper.metrics, "/healthz")[0] == 503 or None)


def wait_for(look):
    """Waits until `look` returns something other than None, and returns that."""
    event = threading.Event()
    for _ in range(int(LIMIT_S / 0.02)):
        value = look()
        if value is not None:
            return value
        event.wait(0.02)
    raise AssertionError(look)


def damage(metadata, key):
    """Overwrites a record with one that cannot be read."""
    with sqlite3.connect(metadata) as connection:
        changed = connection.execute(
            "UPDATE entry SET value = ? WHERE key LIKE ?", (b"{", f"%{key}")
        )
        assert changed.rowcount == 1
    connection.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cell]\n", "cell.metadata must be set"),
        ("[cell", "Expected ']'"),
        ("[cell]\nsecrets = 'x'\n", "unknown setting cell.secrets"),
    ],
)
def test_invalid_settings_end_the_keeper(tmp_path, text, said):
    config = tmp_path / "keeper.toml"
    config.write_text(text)
    result = run(config)
    assert result.returncode == 2
    assert said in result.stderr
    assert str(config) in result.stderr


def test_a_missing_secret_ends_it(settings, tmp_path):
    config = tmp_path / "keeper.toml"
    config.write_text(settings_toml(settings))
    result = run(config)
    assert result.returncode == 2
    assert str(settings.cell.secret) in result.stderr


def run(config):
    return subprocess.run(
        [sys.executable, "-m", "provisioning.cell.keeper", "--config", config],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
