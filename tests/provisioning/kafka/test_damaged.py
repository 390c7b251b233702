"""Batches that cannot be decoded: pages and tails leave them out, and say which."""

import asyncio
from contextlib import closing

import pytest

from provisioning.cell.status.groups import GroupTable
from provisioning.cell.status.reader import StatusReader
from provisioning.kafka import (
    Access,
    Browse,
    Clients,
    Connection,
    RefusedError,
    Target,
    browse,
    describe_group,
    judge,
    next_head,
    ranges,
    reset_offsets,
    tail,
)
from tests.brokers.raw_batches import GZIP, sound_batch
from tests.provisioning.kafka.clients import LIMIT_S, create_topic
from tests.provisioning.kafka.conftest import PASSWORD
from tests.provisioning.kafka.damaged import damaged_broker, stored_batches
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
def remote(broker):
    return Access(Clients(), Connection(broker.bootstrap, PASSWORD))


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


def damaged_spans(partition):
    return [
        (batch.first_offset, batch.next_offset)
        for batch in stored_batches(partition)
        if batch.damage is not None
    ]


def sound_values(partition):
    return [value for batch in stored_batches(partition) for value in batch.values]


@pytest.mark.parametrize("start", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize("partition", range(5))
def test_pages_have_every_sound_record_once_and_name_what_is_damaged(
    remote, partition, limit, start
):
    shown = list(pages(remote, [partition], start=start, limit=limit))
    records = values([record for page in shown for record in page.records])
    damaged = [batch for page in shown for batch in page.damaged]
    if start == "newest":
        records.reverse()
    assert records == sound_values(partition)
    assert sorted(spans(damaged)) == damaged_spans(partition)
    assert {batch["reason"] for batch in damaged} <= {"undecodable"}


@pytest.mark.parametrize("damaged", KINDS, ids=lambda batch: batch.damage)
def test_a_page_goes_on_behind_each_kind_of_damage(remote, damaged):
    batches = stored_batches(0)
    place = batches.index(damaged)
    before, behind = batches[place - 1], batches[place + 1]
    sound = [*before.values, *behind.values]
    request = Browse("offset", value=before.first_offset, partitions=[0], limit=len(sound))
    page = browse(remote, TOPIC, request)
    assert values(page.records) == sound
    assert spans(page.damaged) == [(damaged.first_offset, damaged.next_offset)]


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
        assert sorted(spans(named)) == damaged_spans(partition)


def test_a_log_of_damage_alone_has_an_empty_page(remote):
    page = browse(remote, TOPIC, Browse("newest", partitions=[3], filter="value ~ nowhere"))
    assert (page.records, page.positions, page.stopped) == ([], None, "end")
    batches = stored_batches(3)
    assert spans(page.damaged) == [(batch.first_offset, batch.next_offset) for batch in batches]


def test_a_page_may_begin_within_a_damaged_batch(remote):
    (first, after), *_ = damaged_spans(4)
    page = browse(remote, TOPIC, Browse("offset", value=after - 1, partitions=[4], limit=2))
    assert page.records[0]["offset"] == after
    assert spans(page.damaged) == [(first, after)]


@pytest.mark.parametrize("partition", [0, 1, 4])
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
    assert spans(damaged) == damaged_spans(partition)


async def status_of(broker, *names):
    """The groups of these names, once the broker knows the times of all that waits."""
    reader = StatusReader(broker.metrics_address)
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                assert await reader.read(timeout_s=LIMIT_S)
                groups = [GroupTable([reader.picture]).whole(name) for name in names]
                if all(group and group["partitions"][0]["since_ms"] for group in groups):
                    return groups
                await asyncio.sleep(0.05)
    finally:
        reader.close()


@pytest.mark.parametrize("damage", ["gzip cut off", "plain junk", "junk under zstd"])
def test_damage_hides_no_group(broker, remote, damage):
    """Its first record cannot be read, so the moment comes from the header of the batch."""
    (batch,) = [stored for stored in KINDS if stored.damage == damage]
    # A group of its own: the time of an earlier place would do for an answer.
    names = [f"held-up by {damage}", f"well beside {damage}"]
    reset_offsets(remote, names[0], Target("offset", batch.first_offset), partitions={TOPIC: [0]})
    reset_offsets(remote, names[1], Target("offset", 2), partitions={TOPIC: [2]})
    lag = stored_batches(0)[-1].next_offset - batch.first_offset
    assert describe_group(remote, names[0])["lag"] == lag
    held_up, _ = asyncio.run(status_of(broker, *names))
    assert held_up["lag"] == lag


def test_a_batch_that_ends_other_readers_hides_no_group(broker, remote):
    """It says that it unpacks to 4 GiB, for which librdkafka asks at once."""
    reset_offsets(remote, "before-the-end", Target("offset", 2), partitions={TOPIC: [4]})
    assert describe_group(remote, "before-the-end")["lag"]
    asyncio.run(status_of(broker, "before-the-end"))


def test_a_sound_batch_that_is_large_is_read(remote):
    topic = create_topic(remote, "large", 1)
    large = sound_batch([bytes(40 << 20)], codec=GZIP, base_timestamp=T0_MS)
    with closing(log_in(remote.connection.bootstrap, "__freshet", PASSWORD)) as raw:
        produce_batch(raw, topic, large)
    page = browse(remote, topic, Browse("oldest", timeout_s=100.0))
    assert [record["size"] for record in page.records] == [40 << 20]
    assert page.damaged == []
    assert judge(remote, topic, {0: 0}) == []


def test_a_batch_beyond_the_bounds_is_named_and_is_no_damage(remote):
    """Its records may be sound, so nobody is offered to delete them."""
    topic = create_topic(remote, "too-large", 1)
    bomb = sound_batch([bytes(80 << 20)], codec=GZIP, base_timestamp=T0_MS)
    small = sound_batch([b"small"], base_timestamp=T0_MS)
    with closing(log_in(remote.connection.bootstrap, "__freshet", PASSWORD)) as raw:
        produce_batch(raw, topic, bomb)
        produce_batch(raw, topic, small)
    page = browse(remote, topic, Browse("oldest", timeout_s=100.0))
    assert values(page.records) == ["small"]
    assert [(b["first_offset"], b["reason"]) for b in page.damaged] == [(0, "too_large")]
    assert judge(remote, topic, {0: 0}) == []


def test_a_batch_that_is_not_decoded_in_time_is_passed_over(remote, monkeypatch):
    monkeypatch.setattr(ranges, "DECODE_S", 0.0)
    topic = create_topic(remote, "takes-long", 1)
    with closing(log_in(remote.connection.bootstrap, "__freshet", PASSWORD)) as raw:
        produce_batch(raw, topic, sound_batch([b"slow"], codec=GZIP, base_timestamp=T0_MS))
        produce_batch(raw, topic, sound_batch([b"plain"], base_timestamp=T0_MS))
    page = browse(remote, topic, Browse("oldest"))
    assert values(page.records) == ["plain"]
    assert [(b["first_offset"], b["reason"]) for b in page.damaged] == [(0, "too_slow")]


def test_only_what_cannot_be_decoded_is_judged_so(remote):
    for partition in (0, 1):
        for batch in stored_batches(partition):
            verdicts = judge(remote, TOPIC, {partition: batch.first_offset})
            assert bool(verdicts) is (batch.damage is not None)
            if verdicts:
                first = verdicts[0]
                assert (first["first_offset"], first["next_offset"]) == (
                    batch.first_offset,
                    batch.next_offset,
                )
    # Batches that follow one on the other are one answer.
    assert spans(judge(remote, TOPIC, {1: 0})) == damaged_spans(1)[:3]
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
