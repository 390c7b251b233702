"""The checker finds a lost, a doubled and a reordered record, and accepts a sound log."""

import pytest

from tests.chaos.checker import KINDS, UNKNOWN_OFFSET, Placed, Sent, check, difference

PARTITIONS = 2


def log_of(*partitions):
    """A log: of each partition the records as texts, by offset from 0."""
    return [
        Placed(partition, offset, text.encode())
        for partition, texts in enumerate(partitions)
        for offset, text in enumerate(texts)
    ]


SOUND = log_of(["0.0", "1.0", "0.2", "1.2"], ["0.1", "1.1", "0.3"])
ACKED = {Sent.from_value(value): (partition, offset) for partition, offset, value in SOUND}


def seen_of(log):
    seen: dict[int, dict[int, bytes]] = {}
    for partition, offset, value in log:
        seen.setdefault(partition, {})[offset] = value
    return seen


def counts_of(log, acked=ACKED, seen=None):
    """What is found, kinds of which nothing is found left out."""
    verdict = check(log, acked, seen_of(log) if seen is None else seen)
    assert verdict.is_sound == (not any(verdict.counts.values()))
    assert set(verdict.counts) == set(KINDS)
    return {kind: count for kind, count in verdict.counts.items() if count}


def test_a_sound_log_is_accepted():
    assert counts_of(SOUND) == {}
    assert check(SOUND, ACKED, seen_of(SOUND)).records == len(SOUND)


def test_a_record_that_nobody_acknowledged_may_be_there():
    assert counts_of([*SOUND, Placed(1, 3, b"1.3")]) == {}


def test_an_acknowledgement_without_an_offset_holds_anywhere_in_the_partition():
    assert counts_of(SOUND, {**ACKED, Sent(0, 2): (0, UNKNOWN_OFFSET)}) == {}
    assert counts_of(SOUND, {**ACKED, Sent(0, 2): (1, UNKNOWN_OFFSET)}) == {"moved": 1}


@pytest.mark.parametrize("at", range(len(SOUND)))
def test_any_lost_record_is_found(at):
    rest = SOUND[:at] + SOUND[at + 1 :]
    assert counts_of(rest) == {"lost": 1}
    assert counts_of(rest, seen=seen_of(SOUND)) == {"lost": 1, "taken back": 1}


@pytest.mark.parametrize("at", range(len(SOUND)))
def test_any_doubled_record_is_found(at):
    partition, _, value = SOUND[at]
    again = Placed(partition, 9, value)
    log = sorted([*SOUND, again])
    assert counts_of(log) == {"duplicated": 1}
    other = Placed(1 - partition, 9, value)
    assert counts_of(sorted([*SOUND, other]))["duplicated"] == 1


def test_a_doubled_record_is_found_that_readers_saw():
    log = log_of(["0.0", "0.0"])
    assert counts_of(log, {Sent(0, 0): (0, 0)}) == {"duplicated": 1}


def test_reordered_records_are_found_even_where_clients_agree():
    log = log_of(["0.2", "1.0", "0.0"])
    acked = {Sent.from_value(value): (partition, offset) for partition, offset, value in log}
    assert counts_of(log, acked) == {"reordered": 1}


def test_each_record_behind_a_greater_number_is_reordered():
    log = log_of(["0.4", "0.0", "0.2"])
    assert counts_of(log, {}) == {"reordered": 2}


def test_a_record_that_is_not_where_its_acknowledgement_said_is_found():
    assert counts_of(SOUND, {**ACKED, Sent(0, 0): (0, 7)}) == {"moved": 1}


def test_what_a_reader_saw_and_the_log_lacks_is_found():
    seen = seen_of(SOUND)
    seen[1][3] = b"0.5"
    assert counts_of(SOUND, seen=seen) == {"taken back": 1}
    seen[1][3], seen[0][0] = b"0.3", b"0.9"
    assert counts_of(SOUND, seen=seen) == {"taken back": 2}


def test_an_acknowledged_record_that_no_reader_saw_is_found():
    seen = seen_of(SOUND)
    del seen[0][2]
    assert counts_of(SOUND, seen=seen) == {"unread": 1}


def test_findings_are_named_up_to_a_bound_and_all_counted():
    verdict = check([], {Sent(0, number): (0, number) for number in range(50)}, {})
    assert verdict.counts["lost"] == 50
    assert len(verdict.named["lost"]) == 10


def test_readings_that_differ_are_found():
    assert difference(SOUND, SOUND) == []
    assert len(difference(SOUND, SOUND[:-1])) == 1
    assert len(difference(SOUND, [*SOUND[:-1], Placed(1, 2, b"0.4")])) == 2
