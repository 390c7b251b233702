"""Our own client, in the process that asks: what brokers send ends one call, and nothing else."""

import os
import signal
import socket
import struct
import threading
import time
from contextlib import closing, suppress

import pytest

from brokers import Broker
from provisioning.kafka import (
    Access,
    Browse,
    BusyError,
    Clients,
    Connection,
    NewRecord,
    RefusedError,
    Target,
    UnavailableError,
    UndecodableError,
    UnknownGroupError,
    UnknownPartitionError,
    browse,
    delete_group,
    delete_records,
    describe_group,
    describe_groups,
    end_offset,
    list_group_names,
    produce,
    reset_offsets,
    shared_clients,
    tail,
    wait_acls,
    wait_topic,
    wait_user,
)
from provisioning.kafka.records import _header_of
from tests.provisioning.kafka.conftest import MANAGED, PASSWORD
from tests.provisioning.kafka.hostile import join_alone, log_in, offer_raw_header

INVALID_RECORD = 87


@pytest.fixture
def raw(managed_broker):
    """A client that can send any bytes."""
    with closing(log_in(managed_broker.bootstrap, "__freshet", PASSWORD)) as client:
        yield client


def assignment(topic, *partitions):
    """An assignment as Kafka's own consumers write it."""
    name = topic.encode()
    head = struct.pack(">hih", 1, 1, len(name)) + name + struct.pack(">i", len(partitions))
    return head + b"".join(struct.pack(">i", n) for n in partitions) + struct.pack(">i", -1)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_every_call_is_made(managed_broker, topic, name, mechanism):
    remote = Access(Clients(), Connection(managed_broker.bootstrap, PASSWORD, mechanism=mechanism))
    assert wait_topic(remote, topic)
    assert wait_user(remote, "__freshet")
    assert not wait_user(remote, name, timeout_s=0.1)
    assert wait_acls(remote, [])
    acl = ("TOPIC", topic, "LITERAL", f"User:{name}", "*", "READ", "ALLOW")
    assert not wait_acls(remote, [acl], timeout_s=0.1)
    for n in range(3):
        record = NewRecord(b"\xff", b"%d" % n, [("h", None)], partition=0)
        assert produce(remote, topic, record)["offset"] == n
    assert end_offset(remote, topic, 0) == 3
    page = browse(remote, topic, Browse("oldest", limit=2, filter="value ~ 1"))
    assert [record["value"]["text"] for record in page.records if record["value"]] == ["1"]
    assert page.positions is None
    page = browse(remote, topic, Browse("oldest", limit=1))
    assert page.positions == {0: 1, 1: 0, 2: 0}
    plan = reset_offsets(remote, name, Target("offset", 1), partitions={topic: [0]})
    assert [entry["target"] for entry in plan] == [1]
    assert describe_group(remote, name)["lag"] == 2
    assert name in list_group_names(remote)
    assert [group["lag"] for group in describe_groups(remote, [name])] == [2]
    (low,) = delete_records(remote, topic, {0: 2}, validate_only=True)
    assert low["deleted_offsets"] == 2
    assert end_offset(remote, topic, 0) == 3
    (low,) = delete_records(remote, topic, {0: 2})
    assert (low["low_watermark"], low["deleted_offsets"]) == (2, 2)
    assert browse(remote, topic, Browse("oldest")).records[0]["offset"] == 2
    delete_group(remote, name)
    with pytest.raises(UnknownGroupError, match=name):
        describe_group(remote, name)
    with pytest.raises(UnknownGroupError):
        delete_group(remote, name)
    with pytest.raises(UnknownPartitionError):
        browse(remote, topic, Browse(partitions=[7]))
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        delete_records(remote, topic, {0: 9}, validate_only=True)


@pytest.mark.parametrize("content", [b"\x00", b"\x00\x01", b'{"partitions": [1, 2]}', b"\xff" * 64])
def test_an_assignment_of_any_bytes_hides_no_group(access, raw, topic, name, content):
    """librdkafka ends its process on one zero byte, and refuses the whole answer for JSON."""
    reset_offsets(access, f"{name}-other", Target("earliest"), partitions={topic: None})
    join_alone(raw, name, content)
    group_shown = describe_group(access, name)
    assert (group_shown["state"], group_shown["protocol"]) == ("Stable", "range")
    (member,) = group_shown["members"]
    assert (member["client_id"], member["assignments"]) == ("t", [])
    both = describe_groups(access, [name, f"{name}-other"])
    assert [group["state"] for group in both] == ["Stable", "Empty"]
    with pytest.raises(RefusedError, match="current state is Stable"):
        reset_offsets(access, name, Target("earliest"), partitions={topic: None})


def test_a_decoded_assignment_is_the_one_that_was_made(access, raw, topic, name):
    join_alone(raw, name, assignment(topic, 2, 0))
    (member,) = describe_group(access, name)["members"]
    assert [entry["partition"] for entry in member["assignments"]] == [0, 2]


def test_a_headers_name_that_is_no_text_is_refused(access, raw, topic):
    assert offer_raw_header(raw, topic, b"x") == INVALID_RECORD
    assert browse(access, topic, Browse("oldest", partitions=[0])).records == []


def test_a_headers_name_of_an_earlier_release_that_is_no_text_is_shown_as_bytes():
    shown = [_header_of(name, b"1", 1, 10) for name in (b"\xff\xfe", b"text")]
    assert [header["key"] for header in shown] == ["\\xff\\xfe", "text"]
    assert [header["key_base64"] for header in shown] == ["//4=", None]
    assert [header["value"] and header["value"]["text"] for header in shown] == ["1", "1"]


@pytest.mark.parametrize("protocol_type", ["connect", "sr", "any text at all"])
def test_a_group_of_another_kind_than_consumers_is_listed_and_shown(
    access, raw, name, protocol_type
):
    """As those of Connect and a schema registry, which librdkafka neither lists nor describes."""
    join_alone(raw, name, b"any", protocol_type=protocol_type)
    assert name in list_group_names(access)
    assert describe_group(access, name)["state"] == "Stable"
    with pytest.raises(RefusedError, match="current state is Stable"):
        reset_offsets(access, name, Target("earliest"), partitions={}, dry_run=True)


def test_of_more_partitions_than_the_limit_the_first_are_returned():
    with Broker(**MANAGED) as broker:
        for group in ("one", "two"):
            with closing(log_in(broker.bootstrap, "__freshet", PASSWORD)) as member:
                join_alone(member, group, assignment("a-topic-of-some-length", *range(15_000)))
        remote = Access(Clients(), Connection(broker.bootstrap, PASSWORD))
        first, second = describe_groups(remote, ["one", "two"])
    assert [
        (len(member["assignments"]), member["truncated"])
        for member in (*first["members"], *second["members"])
    ] == [(15_000, False), (5_000, True)]


def test_commits_for_an_internal_topic_hide_none(access, topic, name):
    produce(access, topic, NewRecord(value=b"x", partition=0))
    reset_offsets(access, name, Target("earliest"), partitions={topic: [0]})
    reset_offsets(access, name, Target("earliest"), partitions={"__consumer_offsets": None})
    partitions = describe_group(access, name)["partitions"]
    lags = {entry["topic"]: entry["lag"] for entry in partitions if entry["lag"]}
    assert lags[topic] == 1
    assert lags["__consumer_offsets"] > 0


def silent_access(server):
    host, port = server.getsockname()
    return Access(Clients(), Connection(f"{host}:{port}", PASSWORD))


def test_a_paused_broker_costs_the_call_its_time_and_no_more():
    """The broker is like a stopped process: it accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(UnavailableError, match="REQUEST_TIMED_OUT"):
            list_group_names(silent_access(silent), timeout_s=0.5)
        assert time.monotonic() - begun < 60


def test_a_signal_ends_a_call_that_waits():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list_group_names(silent_access(silent), timeout_s=120.0)
        timer.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        # A right head, then an array of 2 billion elements.
        struct.pack(">iihi", 10, 1, 0, 2**31 - 1),
        struct.pack(">ii", 4, 77),
    ],
)
def test_an_answer_that_is_none_ends_the_call(answer):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            # The client may hang up with the answer unread.
            with connection, suppress(ConnectionError):
                connection.recv(1024)
                connection.sendall(answer)
                connection.recv(1024)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UndecodableError):
            list_group_names(silent_access(server), timeout_s=30.0)
        thread.join()


def test_no_more_calls_than_may_be(access, topic):
    access.clients.calls_max = 1
    with closing(tail(access, topic)) as watched:
        next(watched)
        with pytest.raises(BusyError):
            list_group_names(access)
    assert isinstance(list_group_names(access), list)


def test_of_one_cluster_no_more_calls_than_may_be(access, topic):
    access.clients.calls_max_cluster = 1
    with closing(tail(access, topic)) as watched:
        next(watched)
        with pytest.raises(BusyError):
            list_group_names(access)
        # Calls to another cluster are made.
        other = Access(access.clients, Connection("127.0.0.1:9", PASSWORD))
        with pytest.raises(UnavailableError):
            list_group_names(other, timeout_s=0.2)


def test_a_forked_child_has_clients_of_its_own(managed_broker):
    remote = Access(shared_clients(), Connection(managed_broker.bootstrap, PASSWORD))
    before = list_group_names(remote)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            own = Access(shared_clients(), remote.connection)
            outcome = b"y" if own.clients is not remote.clients else b"n"
            os.write(writer, outcome + b"%d" % len(list_group_names(own)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        assert answer.read() == b"y%d" % len(before)
    os.waitpid(child, 0)
    # The parent's connections are as they were.
    assert list_group_names(remote) == before


def test_calls_at_the_same_time_share_a_client(access, topic):
    barrier = threading.Barrier(8)
    names: list[list[str]] = []

    def ask():
        barrier.wait()
        names.append(list_group_names(access))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == [names[0]] * 8
    with access.client() as client:
        assert 1 <= client.idle_connections <= 8


def test_a_tail_ends_when_it_is_stopped(access, topic):
    leaving: list[bool] = []
    watched = tail(access, topic, stopped=lambda: bool(leaving))
    next(watched)
    leaving.append(True)
    assert list(watched) == []


def test_a_password_is_not_shown():
    assert "secret" not in repr(Access(Clients(), Connection("127.0.0.1:9", "secret")))
