"""Calls in worker processes: bytes that brokers send may end one call, and nothing else."""

import base64
import gc
import socket
import struct
import threading
from contextlib import closing
from pathlib import Path

import pytest

from brokers import Broker
from provisioning.kafka import (
    Access,
    Browse,
    Connection,
    NewRecord,
    RefusedError,
    Target,
    UnavailableError,
    UnknownGroupError,
    UnknownPartitionError,
    WorkerDiedError,
    Workers,
    WorkersBusyError,
    browse,
    calls,
    delete_group,
    delete_records,
    describe_group,
    describe_groups,
    end_offset,
    frames,
    list_group_names,
    produce,
    reset_offsets,
    sample_groups,
    tail,
    wait_topic,
    wait_user,
)
from provisioning.kafka.frames import LENGTH, Request, receive_answer, send_answer, send_request
from provisioning.kafka.worker.__main__ import MEMORY_BYTES_MAX
from provisioning.kafka.worker.assignments import decode_assignment
from provisioning.kafka.worker.serving import CALLS, serve_calls
from tests.provisioning.kafka.conftest import MANAGED, PASSWORD
from tests.provisioning.kafka.hostile import (
    join_alone,
    log_in,
    produce_with_raw_header,
)


@pytest.fixture(scope="module")
def managed_broker():
    """A broker of this module alone, because its groups end a process that describes them."""
    with Broker(**MANAGED) as broker:
        yield broker


@pytest.fixture
def workers():
    """A pool of workers for one test."""
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def remote(managed_broker, workers):
    """The super user's access to the broker, through workers."""
    return Access(workers, Connection(managed_broker.bootstrap, PASSWORD))


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


def test_every_call_gives_in_a_worker_what_it_gives_here(remote, topic, name):
    assert wait_topic(remote, topic)
    assert wait_user(remote, "__freshet")
    assert not wait_user(remote, name, timeout_s=0.1)
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
    assert name in [group["group"] for group in sample_groups(remote, limit_s=30.0)]
    (low,) = delete_records(remote, topic, {0: 2}, validate_only=True)
    assert low["deleted_offsets"] == 2
    delete_group(remote, name)
    with pytest.raises(UnknownGroupError, match=name):
        describe_group(remote, name)
    with pytest.raises(UnknownPartitionError):
        browse(remote, topic, Browse(partitions=[7]))
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        delete_records(remote, topic, {0: 9}, validate_only=True)
    # One worker made all calls, because there was one at a time.
    assert len(remote.workers) == 1


@pytest.mark.parametrize("content", [b"\x00", b"\x00\x01", b'{"partitions": [1, 2]}', b"\xff" * 64])
def test_an_assignment_of_any_bytes_hides_no_group(remote, raw, topic, name, content):
    """librdkafka ends its process on one zero byte, and refuses the whole answer for JSON."""
    reset_offsets(remote, f"{name}-other", Target("earliest"), partitions={topic: None})
    join_alone(raw, name, content)
    group_shown = describe_group(remote, name)
    assert (group_shown["state"], group_shown["protocol"]) == ("Stable", "range")
    (member,) = group_shown["members"]
    assert (member["client_id"], member["assignments"]) == ("t", [])
    sampled = {group["group"]: group for group in sample_groups(remote, limit_s=30.0)}
    assert sampled[name]["state"] == "Stable"
    assert sampled[f"{name}-other"]["state"] == "Empty"
    with pytest.raises(RefusedError, match="current state is Stable"):
        reset_offsets(remote, name, Target("earliest"), partitions={topic: None})


def test_a_call_that_ends_its_worker_ends_nothing_else(remote, raw, topic, name, monkeypatch):
    join_alone(raw, name, b"\x00")
    monkeypatch.setattr(
        calls, "_describe_carefully", lambda access, call, *a: access.call(call, *a)
    )
    seen = []
    with closing(tail(remote, topic)) as watched:
        next(watched)
        for _ in range(3):
            with pytest.raises(WorkerDiedError):
                describe_group(remote, name)
            produce(remote, topic, NewRecord(value=b"x", partition=0))
            seen += next(batch for batch in watched if batch.records).records
    assert [record["offset"] for record in seen] == [0, 1, 2]


def test_a_decoded_assignment_is_the_one_that_was_made(remote, raw, topic, name):
    join_alone(raw, name, assignment(topic, 2, 0))
    (member,) = describe_group(remote, name)["members"]
    assert decode_assignment(assignment(topic, 2, 0)) == member["assignments"]
    assert [entry["partition"] for entry in member["assignments"]] == [0, 2]


@pytest.mark.parametrize("cut", range(1, 40))
def test_half_an_assignment_is_none(cut):
    whole = assignment("a-topic-of-some-length", 1, 2, 3)
    assert decode_assignment(whole[:cut]) == []


def test_a_headers_name_that_is_no_text_is_shown_as_bytes(remote, raw, topic):
    for n in range(20):
        produce_with_raw_header(raw, topic, b"%d" % n)
    # The binding's own function ends the process once it was called some eight times.
    for _ in range(12):
        page = browse(remote, topic, Browse("oldest", partitions=[0], filter="headers.text = 2"))
        assert len(page.records) == 20
    record = page.records[0]
    assert [header["key"] for header in record["headers"]] == ["\\xff\\xfe", "text"]
    assert record["headers"][0]["key_base64"] == base64.b64encode(b"\xff\xfe").decode()
    assert record["headers"][1]["key_base64"] is None
    assert [header["value"] and header["value"]["text"] for header in record["headers"]] == [
        "1",
        "2",
    ]
    assert record["size"] == 1 + 2 + 1 + 4 + 1


def test_a_group_of_another_kind_than_consumers_is_shown(remote, raw, name):
    """As those of Connect and a schema registry, which librdkafka does not describe."""
    join_alone(raw, name, b"any", protocol_type="connect")
    assert describe_group(remote, name)["state"] == "Stable"
    with pytest.raises(RefusedError, match="current state is Stable"):
        reset_offsets(remote, name, Target("earliest"), partitions={}, dry_run=True)


def test_of_more_partitions_than_the_limit_the_first_are_returned(workers):
    """It has a broker of its own, because these groups would fill the samples of another one."""
    with Broker(**MANAGED) as broker:
        for group in ("one", "two", "three"):
            with closing(log_in(broker.bootstrap, "__freshet", PASSWORD)) as member:
                join_alone(member, group, assignment("a-topic-of-some-length", *range(15_000)))
        remote = Access(workers, Connection(broker.bootstrap, PASSWORD))
        first, second = describe_groups(remote, ["one", "two"])
        sampled = [group["group"] for group in sample_groups(remote, limit_s=30.0)]
    assert [
        (len(member["assignments"]), member["truncated"])
        for member in (*first["members"], *second["members"])
    ] == [(15_000, False), (5_000, True)]
    # Where a sample is full, the groups behind are left out.
    assert sampled == ["one", "three"]


def test_commits_for_an_internal_topic_have_no_age_and_hide_none(remote, topic, name):
    produce(remote, topic, NewRecord(value=b"x", partition=0))
    reset_offsets(remote, name, Target("earliest"), partitions={topic: [0]})
    reset_offsets(remote, name, Target("earliest"), partitions={"__consumer_offsets": None})
    partitions = describe_group(remote, name)["partitions"]
    lags = {entry["topic"]: entry["lag_seconds"] for entry in partitions if entry["lag"]}
    assert lags["__consumer_offsets"] is None
    assert lags[topic] is not None
    assert name in [group["group"] for group in sample_groups(remote, limit_s=30.0)]


def test_a_paused_broker_costs_the_call_its_time_and_no_more(topic, workers):
    """The broker is like a stopped process: it accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        paused = Access(workers, Connection(f"{host}:{port}", PASSWORD))
        with pytest.raises(UnavailableError):
            paused.call("list_group_names", limit_s=0.5)
        assert len(workers) == 0


def test_a_worker_that_hangs_is_ended_by_its_time(workers):
    """Also where the caller does not wait, because a timer of the kernel ends it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        connection = Connection(f"{host}:{port}", PASSWORD)
        with closing(workers._server.fork(connection)) as worker:
            # The call itself would give up only after five seconds, with an answer.
            send_request(worker.socket, Request(connection, "list_group_names", (), {}, 0.2))
            assert receive_answer(worker.socket) is None


def test_a_worker_that_is_asked_nothing_ends_and_another_takes_its_place(remote):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        serve_calls(theirs, idle_s=0.0)
        assert receive_answer(ours) == {"bye": True}
    list_group_names(remote)
    (idle,) = remote.workers._idle
    # Simulates a worker that ended between two calls.
    idle.socket.close()
    idle.socket, gone = socket.socketpair()
    send_answer(gone, bye=True)
    gone.close()
    list_group_names(remote)
    assert len(remote.workers) == 1
    assert remote.workers._idle[0] is not idle


def test_a_fork_server_that_was_ended_is_started_anew(remote):
    list_group_names(remote)
    server = remote.workers._server
    first = server._process
    first.kill()
    first.wait()
    # An existing worker goes on; the next new one needs the server.
    list_group_names(remote)
    remote.workers._idle.pop().close()
    list_group_names(remote)
    assert server._process.pid != first.pid


def test_no_more_calls_than_may_be(remote, topic):
    remote.workers.calls_max = 1
    with closing(tail(remote, topic)) as watched:
        next(watched)
        with pytest.raises(WorkersBusyError):
            list_group_names(remote)
    assert isinstance(list_group_names(remote), list)


def test_of_one_cluster_no_more_calls_than_may_be(remote, topic):
    remote.workers.calls_max_cluster = 1
    with closing(tail(remote, topic)) as watched:
        next(watched)
        with pytest.raises(WorkersBusyError):
            list_group_names(remote)
        # Calls to another cluster are made.
        other = Access(remote.workers, Connection("127.0.0.1:9", PASSWORD))
        with pytest.raises(UnavailableError):
            other.call("list_group_names", limit_s=0.2)


def test_an_answer_that_drips_ends_with_the_calls_time():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(LENGTH.pack(100) + b"{")
        with pytest.raises(TimeoutError):
            receive_answer(ours, limit_s=0.05)


def test_an_answer_that_is_too_large_is_refused_by_name(remote, topic, monkeypatch):
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(frames, "FRAME_BYTES_MAX", 1_000)
    monkeypatch.setitem(CALLS, "large", lambda access: "x" * 2_000)
    with ours, theirs:
        send_request(ours, Request(Connection("127.0.0.1:9", ""), "large", (), {}, 1.0))
        ours.shutdown(socket.SHUT_WR)
        serve_calls(theirs)
        answer = receive_answer(ours)
    assert answer is not None
    assert answer["error"]["name"] == "ANSWER_TOO_LARGE"


def test_no_more_workers_are_kept_than_may_be(remote, workers):
    workers.kept_max = 2
    barrier = threading.Barrier(4)

    def ask():
        barrier.wait()
        list_group_names(remote)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(workers) <= 2


def workers_of(remote):
    """The pids of the worker processes of an access."""
    server = remote.workers._server._process.pid
    return Path(f"/proc/{server}/task/{server}/children").read_text().split()


def test_a_worker_takes_no_more_memory_than_its_limit_and_leaves_no_core(remote):
    list_group_names(remote)
    (worker,) = workers_of(remote)
    limits = Path(f"/proc/{worker}/limits").read_text()
    (data,) = [line for line in limits.splitlines() if line.startswith("Max data size")]
    (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert data.split()[3:5] == [str(MEMORY_BYTES_MAX)] * 2
    assert core.split()[4:6] == ["0", "0"]


def test_a_tail_that_is_left_leaves_no_process(remote, topic):
    watched = tail(remote, topic)
    next(watched)
    (worker,) = workers_of(remote)
    watched.close()
    while Path(f"/proc/{worker}").exists():
        gc.collect()
    assert len(remote.workers) == 0


def test_a_tail_ends_when_it_is_stopped(remote, topic):
    leaving: list[bool] = []
    watched = tail(remote, topic, stopped=lambda: bool(leaving))
    next(watched)
    leaving.append(True)
    assert list(watched) == []


def test_an_answer_that_is_none_ends_the_call(workers, remote):
    for wrong in (b"[1]", b"no json", b"\xff" * 8, b"{}", b'{"error": "x"}', b'{"error": null}'):
        ours, theirs = socket.socketpair()
        list_group_names(remote)
        worker = workers._idle[-1]
        worker.socket.close()
        worker.socket = ours
        with theirs:
            theirs.sendall(LENGTH.pack(len(wrong)) + wrong)
            with pytest.raises(WorkerDiedError):
                list_group_names(remote)
    assert isinstance(list_group_names(remote), list)


def test_a_password_is_not_shown():
    assert "secret" not in repr(Access(Workers(), Connection("127.0.0.1:9", "secret")))
