"""Browsing records page by page, producing one, and tailing a topic."""

import base64
import threading
from contextlib import contextmanager
from typing import Any

import pytest

from provisioning.kafka import (
    Browse,
    NewRecord,
    RefusedError,
    UnknownPartitionError,
    browse,
    tail,
)
from provisioning.kafka import produce as produce_one
from tests.provisioning.kafka.clients import create_topic, produce_records

T0 = 1_700_000_000_000


@pytest.fixture
def filled(access, topic):
    """A topic with 30 records: value n at T0 + n (ms) in partition n % 3."""
    produce_records(access, topic, [(n % 3, b"%d" % n, T0 + n) for n in range(30)])
    return topic


def values(page):
    return [int(record["value"]["text"]) for record in page.records]


def texts(batch: Any):
    return [record["value"]["text"] for record in batch.records]


def pages(access, topic, **options):
    """All pages from the first to the last."""
    positions: dict[int, int] = {}
    while True:
        page = browse(access, topic, Browse(**options, positions=positions))
        yield page
        if page.positions is None:
            return
        positions = page.positions


def test_newest_are_the_last_of_all_partitions(access, filled):
    page = browse(access, filled, Browse("newest", limit=5))
    assert values(page) == [29, 28, 27, 26, 25]
    assert page.stopped == "limit"


@pytest.mark.parametrize("start", ["newest", "oldest"])
@pytest.mark.parametrize("limit", [1, 7, 30, 100])
def test_pages_give_each_record_once_and_in_order(access, filled, start, limit):
    numbers = [n for page in pages(access, filled, start=start, limit=limit) for n in values(page)]
    assert numbers == sorted(range(30), reverse=start == "newest")


def test_oldest_from_offset_and_from_time(access, filled):
    assert values(browse(access, filled, Browse("oldest", limit=3))) == [0, 1, 2]
    page = browse(access, filled, Browse("offset", value=8, partitions=[1]))
    assert values(page) == [25, 28]
    assert (page.positions, page.stopped) == (None, "end")
    assert values(browse(access, filled, Browse("timestamp", value=T0 + 20, limit=3))) == [
        20,
        21,
        22,
    ]
    assert values(browse(access, filled, Browse("timestamp", value=T0 + 99))) == []
    # Before the first record that is kept, and beyond the last.
    assert values(browse(access, filled, Browse("offset", value=-5, partitions=[0], limit=1))) == [
        0
    ]
    assert values(browse(access, filled, Browse("offset", value=99, partitions=[0]))) == []


def test_an_empty_topic_has_an_empty_page(access, topic):
    for start in ("newest", "oldest"):
        page = browse(access, topic, Browse(start))
        assert (page.records, page.positions, page.stopped) == ([], None, "end")


def test_bytes_end_a_page_and_the_next_goes_on(access, name):
    topic = create_topic(access, name, 1)
    produce_records(access, topic, [(0, b"%03d" % n + b"x" * 997, T0 + n) for n in range(20)])
    for start in ("newest", "oldest"):
        found_pages = list(pages(access, topic, start=start, limit=10, bytes_max=3_000))
        assert {page.stopped for page in found_pages[:-1]} <= {"bytes", "limit"}
        assert any(page.stopped == "bytes" for page in found_pages)
        offsets = [record["offset"] for page in found_pages for record in page.records]
        assert offsets == sorted(range(20), reverse=start == "newest")


@pytest.mark.parametrize("start", ["newest", "oldest"])
@pytest.mark.parametrize("chosen", [{}, {"filter": "value ~ x"}])
def test_what_is_shown_ends_a_page_and_the_next_goes_on(access, name, start, chosen):
    topic = create_topic(access, name, 2)
    records = [(n % 2, b"%03d" % n + b"x" * 9_997, T0 + n) for n in range(40)]
    produce_records(access, topic, records)
    # Of a value 1,000 bytes are shown.
    found_pages = list(
        pages(
            access, topic, start=start, limit=20, shown_max=1_000, page_bytes_max=12_000, **chosen
        )
    )
    assert "bytes" in {page.stopped for page in found_pages}
    assert max(len(page.records) for page in found_pages) in range(8, 13)
    shown = [int(text[:3]) for page in found_pages for text in texts(page)]
    assert sorted(shown) == list(range(40))


@pytest.mark.parametrize("start", ["newest", "oldest"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_filter_leaves_out_and_misses_nothing(access, filled, start, limit):
    found_pages = list(pages(access, filled, start=start, limit=limit, filter="value ~ 5"))
    assert [n for page in found_pages for n in values(page)] == sorted(
        [5, 15, 25], reverse=start == "newest"
    )
    last = found_pages[-1]
    assert last.stopped == "end"
    ends = {
        reached["partition"]: (reached["begin"], reached["position"]) for reached in last.reached
    }
    assert ends == dict.fromkeys(range(3), (0, 0 if start == "newest" else 10))


@pytest.mark.parametrize("start", ["newest", "oldest"])
def test_a_filter_that_finds_nothing_says_how_far_it_looked(access, name, start):
    """Each page goes on behind the one before, though none has a record."""
    topic = create_topic(access, name, 1)
    produce_records(access, topic, [(0, b"%03d" % n + b"x" * 997, T0 + n) for n in range(40)])
    found_pages = list(
        pages(access, topic, start=start, limit=10, bytes_max=10_000, filter="nowhere")
    )
    assert [record for page in found_pages for record in page.records] == []
    assert len(found_pages) > 3
    assert {page.stopped for page in found_pages[:-1]} == {"bytes"}
    stands = [page.reached[0]["position"] for page in found_pages]
    assert stands == sorted(set(stands), reverse=start == "newest")
    assert stands[-1] == (0 if start == "newest" else 40)
    assert sum(page.records_read for page in found_pages) >= 40


def test_bytes_are_shown_as_they_are(access, topic):
    headers = [("h", b"1"), ("h", b"2"), ("none", None)]
    record = NewRecord(b"\xff\x00", "grün".encode(), headers, partition=1)
    produced = produce_one(access, topic, record)
    assert (produced["partition"], produced["offset"]) == (1, 0)
    record_shown: Any = browse(access, topic, Browse()).records[0]
    assert record_shown["key"]["text"] is None
    assert base64.b64decode(record_shown["key"]["base64"]) == b"\xff\x00"
    assert record_shown["value"]["text"] == "grün"
    shown = [(h["key"], h["value"] and h["value"]["text"]) for h in record_shown["headers"]]
    assert shown == [("h", "1"), ("h", "2"), ("none", None)]
    assert record_shown["timestamp_ms"] == produced["timestamp_ms"]
    assert record_shown["timestamp_type"] == "CreateTime"
    assert record_shown["size"] == 2 + 5 + 1 + 1 + 1 + 1 + 4


def test_what_is_long_is_cut_between_characters(access, topic):
    produce_one(access, topic, NewRecord(value=("a" + "ü" * 40_000).encode(), partition=0))
    produce_one(access, topic, NewRecord(value=None, key=b"k", partition=0))
    records: Any = browse(access, topic, Browse()).records
    tombstone, long = records
    assert tombstone["value"] is None
    assert (long["value"]["size"], long["value"]["truncated"]) == (80_001, True)
    assert long["value"]["text"] == "a" + "ü" * 32_767


def test_keys_go_where_javas_clients_send_them(access, topic):
    # Java's Utils.murmur2 of these keys, modulo 3.
    partitions = [
        produce_one(access, topic, NewRecord(key=key, value=b"x"))["partition"]
        for key in (b"21", b"foobar", b"a-little-bit-long-string")
    ]
    assert partitions == [
        java_partition(key, 3) for key in (b"21", b"foobar", b"a-little-bit-long-string")
    ]


def java_partition(key, count):
    """`toPositive(murmur2(key)) % count`, with the hashes that Kafka's UtilsTest holds."""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    return (hashes[key] & 0x7FFFFFFF) % count


def test_what_cannot_be_is_refused(access, topic):
    with pytest.raises(UnknownPartitionError):
        produce_one(access, topic, NewRecord(value=b"x", partition=3))
    with pytest.raises(UnknownPartitionError):
        browse(access, topic, Browse(partitions=[0, 3]))
    small = create_topic(access, f"{topic}-small", 1, **{"max.message.bytes": "100"})
    with pytest.raises(RefusedError, match="MESSAGE_TOO_LARGE"):
        produce_one(access, small, NewRecord(value=b"x" * 1_000))


def test_tail_shows_what_arrives(access, filled):
    watched = tail(access, filled)
    assert next(watched).records == []
    produce_one(access, filled, NewRecord(value=b"30", partition=0))
    batch_with_record = next(batch for batch in watched if batch.records)
    assert texts(batch_with_record) == ["30"]
    assert batch_with_record.positions == {0: 11, 1: 10, 2: 10}
    watched.close()
    produce_one(access, filled, NewRecord(value=b"31", partition=0))
    # A record between two tails is not lost.
    again = tail(access, filled, positions=batch_with_record.positions)
    batch_with_record = next(batch for batch in again if batch.records)
    assert texts(batch_with_record) == ["31"]
    again.close()


def test_tail_computes_in_turns_and_may_wait_after_each_record(access, filled):
    done = []

    @contextmanager
    def computing():
        done.append("begin")
        yield lambda _seconds: done.append("step")
        done.append("end")

    watched = tail(access.computing_by(computing), filled, filter="value ~ 3")
    next(watched)
    for value in (b"30", b"41", b"31"):
        produce_one(access, filled, NewRecord(value=value, partition=0))
    seen: list[str] = []
    while len(seen) < 2:
        seen += texts(next(watched))
    watched.close()
    assert seen == ["30", "31"]
    # A step for each batch that is decoded, and one for each record.
    assert done.count("step") == 6
    assert done[0] == "begin"
    assert done.count("begin") == done.count("end")


def test_a_page_that_waits_too_long_for_its_turn_ends_and_the_next_one_goes_on(access, filled):
    timeout_s = 1.0
    steps = []

    @contextmanager
    def computing():
        def wait_in_third_step(_seconds):
            steps.append("step")
            if len(steps) == 3:
                threading.Event().wait(timeout_s)

        yield wait_in_third_step

    browse_all = Browse("oldest", limit=100, timeout_s=timeout_s)
    page = browse(access.computing_by(computing), filled, browse_all)
    assert page.stopped == "time"
    assert 0 < len(page.records) < 30
    going_on = Browse("oldest", limit=100, positions=page.positions or {})
    rest = browse(access, filled, going_on)
    assert sorted(values(page) + values(rest)) == list(range(30))


def test_tail_ends_with_its_time(access, filled):
    assert list(tail(access, filled, seconds_max=0.0))[1:] == []


def test_tail_that_is_far_behind_goes_on_near_the_end(access, name):
    topic = create_topic(access, name, 1)
    produce_records(access, topic, [(0, b"%d" % n, T0 + n) for n in range(3_000)])
    watched = tail(access, topic, positions={0: 0})
    seen, skipped = [], 0
    for batch in watched:
        seen += [record["offset"] for record in batch.records]
        skipped += batch.skipped
        if batch.positions[0] == 3_000:
            break
    watched.close()
    assert skipped > 0
    assert len(seen) + skipped == 3_000
    assert seen == sorted(set(seen))
