"""Batches that cannot be decoded: pages and tails leave them out, and say which."""

import os
import signal
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.kafka import (
    Access,
    Browse,
    Connection,
    NewRecord,
    RefusedError,
    Target,
    UnavailableError,
    Workers,
    browse,
    describe_group,
    judge,
    next_head,
    reading,
    reset_offsets,
    sample_groups,
    tail,
)
from provisioning.kafka.worker import batches as batch_consumer
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.heads import heads_from
from provisioning.kafka.worker.judging import judge as judge_here
from provisioning.kafka.worker.messages import browse as browse_here
from provisioning.kafka.worker.messages import produce
from provisioning.kafka.worker.ranges import legs_of
from provisioning.kafka.worker.wire import Wire
from tests.brokers.raw_batches import GZIP, sound_batch
from tests.provisioning.kafka.conftest import PASSWORD, create_topic
from tests.provisioning.kafka.damaged import HANGING, damaged_broker, stored_batches
from tests.provisioning.kafka.hostile import log_in, produce_batch

TOPIC = "damaged"
T0_MS = 1_700_000_000_000
KINDS = [batch for batch in stored_batches(0) if batch.damage and batch.stored_in == "lane"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker with the sample, for all tests of this module."""
    with damaged_broker(tmp_path_factory.mktemp("damaged") / "sample") as served:
        yield served


@pytest.fixture
def remote(broker, monkeypatch):
    """Access through workers of the test's own, in a process that knows of no damage yet."""
    monkeypatch.setattr(reading, "_memory", reading._Memory())
    workers = Workers()
    yield Access(workers, Connection(broker.bootstrap, PASSWORD))
    workers.close()


def pages(remote, partitions, **options):
    """All pages from the first to the last."""
    positions: dict[int, int] = {}
    while True:
        page = browse(remote, TOPIC, Browse(partitions=partitions, positions=positions, **options))
        yield page
        if page.positions is None:
            return
        positions = page.positions


def values(records):
    return [record["value"]["text"] for record in records]


def spans(damaged):
    return [(batch["first_offset"], batch["next_offset"]) for batch in damaged]


def skipped_spans(partition):
    return [
        (batch.first_offset, batch.next_offset)
        for batch in stored_batches(partition)
        if batch.is_skipped
    ]


def sound_values(partition):
    return [value for batch in stored_batches(partition) for value in batch.values]


@pytest.mark.parametrize("start", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize("partition", [1, 2, 4])
def test_pages_have_every_sound_record_once_and_name_what_is_damaged(
    remote, partition, limit, start
):
    shown = list(pages(remote, [partition], start=start, limit=limit))
    records = values([record for page in shown for record in page.records])
    damaged = spans([batch for page in shown for batch in page.damaged])
    if start == "newest":
        records.reverse()
    assert records == sound_values(partition)
    assert sorted(damaged) == skipped_spans(partition)
    assert all(page.stuck == {} for page in shown)


@pytest.mark.parametrize("damaged", KINDS, ids=lambda batch: batch.damage)
def test_a_page_goes_on_behind_each_kind_of_damage(remote, damaged):
    batches = stored_batches(0)
    place = batches.index(damaged)
    before, behind = batches[place - 1], batches[place + 1]
    sound = [*before.values, *behind.values]
    # What hangs a reader may take all the time of a page, on a machine that does other work too;
    # the next page goes on.
    shown = []
    for page in pages(
        remote,
        [0],
        start="offset",
        value=before.first_offset,
        limit=len(sound) + damaged.shown,
    ):
        shown.append(page)
        if page.stopped != "time":
            break
    records = [record for page in shown for record in page.records]
    damage = [batch for page in shown for batch in page.damaged]
    assert [value for value in values(records) if value in sound] == sound
    expected = [(damaged.first_offset, damaged.next_offset)] if damaged.is_skipped else []
    assert spans(damage)[: len(expected)] == expected
    reasons = {batch["reason"] for batch in damage[: len(expected)]}
    assert reasons <= {"too_slow" if damaged.damage == HANGING else "undecodable"}


@pytest.mark.parametrize("start", ["oldest", "newest"])
def test_damage_of_one_partition_hides_nothing_of_others(remote, start):
    shown = list(pages(remote, [1, 2, 4], start=start, limit=500))
    for partition in (1, 2, 4):
        records = [
            record for page in shown for record in page.records if record["partition"] == partition
        ]
        expected = sound_values(partition)
        assert values(records) == (expected if start == "oldest" else expected[::-1])
        named = [b for page in shown for b in page.damaged if b["partition"] == partition]
        assert sorted(spans(named)) == skipped_spans(partition)


def test_a_log_of_damage_alone_has_an_empty_page(remote):
    page = browse(remote, TOPIC, Browse("newest", partitions=[3], filter="value ~ nowhere"))
    assert (page.records, page.positions, page.stopped) == ([], None, "end")
    # One by one those are skipped too of which librdkafka gives something, but not every record.
    batches = stored_batches(3)
    assert spans(page.damaged) == [(batch.first_offset, batch.next_offset) for batch in batches]


def test_a_batch_that_ends_its_reader_ends_no_page(remote):
    page = browse(remote, TOPIC, Browse("oldest", partitions=[4]))
    assert values(page.records) == sound_values(4)
    assert {batch["reason"] for batch in page.damaged} == {"ends_reader"}


def test_a_page_may_begin_within_a_damaged_batch(remote):
    (first, after), *_ = skipped_spans(4)
    page = browse(remote, TOPIC, Browse("offset", value=after - 1, partitions=[4], limit=2))
    assert page.records[0]["offset"] == after
    assert spans(page.damaged) == [(first, after)]


@pytest.mark.parametrize("partition", [1, 4])
def test_a_tail_goes_on_behind_damage(remote, partition):
    seen, damaged = [], []
    expected, end = sound_values(partition), stored_batches(partition)[-1].next_offset
    with closing(tail(remote, TOPIC, positions={partition: 0})) as watched:
        for batch in watched:
            seen += values(batch.records)
            damaged += batch.damaged
            if batch.positions[partition] >= end:
                break
    assert seen == expected
    assert spans(damaged) == skipped_spans(partition)


def test_a_tail_goes_on_after_its_worker_was_ended(remote):
    access = KafkaClients(remote.connection)
    topic = create_topic(access, "tail-of-an-ended-worker", 1)
    seen: list[Any] = []
    with closing(tail(remote, topic)) as watched:
        next(watched)
        for n in range(3):
            for worker in workers_of(remote):
                os.kill(int(worker), signal.SIGKILL)
            produce(access, topic, NewRecord(value=b"%d" % n, partition=0))
            seen += next(batch for batch in watched if batch.records).records
    assert values(seen) == ["0", "1", "2"]


def workers_of(remote):
    """The ids of an access's worker processes."""
    server = remote.workers._server._process.pid
    return Path(f"/proc/{server}/task/{server}/children").read_text().split()


def test_a_worker_that_met_damage_is_not_used_again(remote):
    browse(remote, TOPIC, Browse("oldest", partitions=[2]))
    (kept,) = workers_of(remote)
    assert len(remote.workers) == 1
    browse(remote, TOPIC, Browse("oldest", partitions=[1], limit=1))
    while Path(f"/proc/{kept}").exists():
        remote.workers._idle[:] = [
            worker for worker in remote.workers._idle if worker.socket.recv(1)
        ]
    browse(remote, TOPIC, Browse("oldest", partitions=[2]))
    assert kept not in workers_of(remote)


@pytest.mark.parametrize("damage", [HANGING, "plain junk", "junk under zstd"])
def test_damage_hides_no_group(remote, damage):
    """Its first record cannot be read, so the moment comes from the header of the batch."""
    (batch,) = [stored for stored in KINDS if stored.damage == damage]
    reset_offsets(remote, "held-up", Target("offset", batch.first_offset), partitions={TOPIC: [0]})
    reset_offsets(remote, "well", Target("offset", 2), partitions={TOPIC: [2]})
    described = {group["group"]: group for group in sample_groups(remote, limit_s=30.0)}
    assert described["well"]["lag_seconds"] is not None
    assert described["held-up"]["lag"] == stored_batches(0)[-1].next_offset - batch.first_offset
    if damage != "junk under zstd":
        assert described["held-up"]["lag_seconds"] is not None


def test_a_batch_that_ends_its_reader_hides_no_group(remote):
    reset_offsets(remote, "before-the-end", Target("offset", 2), partitions={TOPIC: [4]})
    assert describe_group(remote, "before-the-end")["lag_seconds"] is not None


def test_a_sound_batch_that_takes_long_is_waited_for(broker, monkeypatch):
    """It takes longer than a reader of several partitions waits before it calls one stuck."""
    access = KafkaClients(Connection(broker.bootstrap, PASSWORD))
    topic = create_topic(access, "takes-long", 1)
    large = sound_batch([bytes(40 << 20)], codec=GZIP, base_timestamp=T0_MS)
    with closing(log_in(broker.bootstrap, "__freshet", PASSWORD)) as raw:
        produce_batch(raw, topic, large)
    # However busy the machine is.
    monkeypatch.setattr(batch_consumer, "DECODE_S", 100.0)
    page = browse_here(access, topic, Browse("oldest", timeout_s=100.0, careful=True))
    assert [record["size"] for record in page.records] == [40 << 20]
    assert judge_here(access, topic, {0: 0}, seconds_max=100.0) == []


def test_only_what_cannot_be_decoded_is_judged_so(remote):
    for batch in stored_batches(1):
        verdicts = judge(remote, TOPIC, {1: batch.first_offset})
        assert bool(verdicts) is batch.is_skipped
        if verdicts:
            first = verdicts[0]
            assert (first["first_offset"], first["next_offset"]) == (
                batch.first_offset,
                batch.next_offset,
            )
    # Batches that follow one on the other are one answer.
    assert spans(judge(remote, TOPIC, {1: 0})) == skipped_spans(1)[:3]
    assert judge(remote, TOPIC, {2: 0, 1: stored_batches(1)[-1].next_offset}) == []


def test_a_head_is_that_of_the_batch_which_has_the_offset(remote):
    for batch in stored_batches(0):
        for offset in range(batch.first_offset, batch.next_offset):
            head = next_head(remote, TOPIC, 0, offset)
            assert head is not None
            assert (head["first_offset"], head["next_offset"]) == (
                batch.first_offset,
                batch.next_offset,
            )
    assert next_head(remote, TOPIC, 0, stored_batches(0)[-1].next_offset) is None
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        next_head(remote, TOPIC, 0, 100_000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_heads_are_read_with_either_mechanism(broker, mechanism):
    access = KafkaClients(Connection(broker.bootstrap, PASSWORD, mechanism=mechanism))
    heads = list(heads_from(access, TOPIC, 2, 0, 5.0))
    batches = stored_batches(2)
    assert [head["first_offset"] for head in heads] == [batch.first_offset for batch in batches]
    assert [head["records"] for head in heads] == [len(batch.values) for batch in batches]
    assert heads[0]["timestamp_ms"] == T0_MS + 1_000_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_opens_no_connection(broker, mechanism):
    host, _, port = broker.bootstrap.rpartition(":")
    wrong = Connection(broker.bootstrap, "another", mechanism=mechanism)
    with pytest.raises(RefusedError, match="SASL_AUTHENTICATION_FAILED"):
        Wire(wrong, (host, int(port)), time.monotonic() + 30)


def test_a_broker_that_says_nothing_costs_the_head_its_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        connection = Connection(f"{host}:{port}", PASSWORD)
        with pytest.raises(UnavailableError, match=r"no answer in time|timed out"):
            Wire(connection, (host, port), time.monotonic() + 0.2)


SPANS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(1, 5)), max_size=6)


@given(st.integers(0, 30), st.integers(0, 30), SPANS)
def test_legs_are_the_range_without_what_is_skipped(low, high, chosen):
    skip = [(number, first, first + length) for number, first, length in chosen]
    left = {
        offset
        for offset in range(low, high)
        if not any(number == 0 and first <= offset < end for number, first, end in skip)
    }
    legs = legs_of(low, high, skip, 0)
    assert [offset for leg in legs for offset in range(*leg)] == sorted(left)
    assert all(begin < end for begin, end in legs)
