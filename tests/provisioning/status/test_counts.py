"""Counters of topics while brokers of a cluster end and others begin."""

import orjson

from provisioning.cell.status.counts import TopicCounts
from provisioning.cell.status.picture import Picture


def picture_of(slot, incarnation, **records):
    """A broker that knows these topics and has counted as many records in each."""
    changes = []
    for number, (topic, count) in enumerate(records.items()):
        changes += [["t", number, topic], ["c", number, 10 * count, 0, count]]
    picture = Picture(slot)
    head = {"v": 1, "incarnation": incarnation, "next": f"{incarnation}.0.1"}
    picture.take(orjson.dumps({**head, "connections": [0, 0], "changes": changes}))
    return picture


def test_what_a_broker_counted_stays_as_long_as_another_goes_on():
    counts = TopicCounts()
    other = picture_of(1, 2, a=5)
    assert counts.of([picture_of(0, 1, a=3), other]) == {"a": [80, 0, 8]}
    assert counts.of([picture_of(0, 1, a=4), other]) == {"a": [90, 0, 9]}
    # It has ended, and its successor begins at 0.
    assert counts.of([other]) == {"a": [90, 0, 9]}
    assert counts.of([picture_of(0, 3, a=0), other]) == {"a": [90, 0, 9]}
    assert counts.of([picture_of(0, 3, a=1), picture_of(1, 2, a=6)]) == {"a": [110, 0, 11]}
    # The first one of this address is another process by its incarnation alone.
    assert counts.of([picture_of(0, 4, a=2), picture_of(1, 2, a=6)]) == {"a": [130, 0, 13]}


def test_counters_begin_anew_where_no_broker_goes_on():
    counts = TopicCounts()
    counts.of([picture_of(0, 1, a=3), picture_of(1, 2, a=5)])
    counts.of([picture_of(1, 2, a=5)])
    assert counts.of([picture_of(0, 3, a=1)]) == {"a": [10, 0, 1]}
    assert counts.of([picture_of(0, 3, a=2)]) == {"a": [20, 0, 2]}


def test_a_topic_that_no_broker_names_is_left_out():
    counts = TopicCounts()
    counts.of([picture_of(0, 1, a=3, b=1), picture_of(1, 2, a=0, b=0)])
    assert counts.of([picture_of(1, 2, a=0)]) == {"a": [30, 0, 3]}
