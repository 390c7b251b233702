"""What status records add up to, and what of them is refused; the lag of a sample."""

import orjson
import pytest

from brokers.metadata_records import ClusterStatus, Sample
from provisioning.cell.samples import sampled_groups
from provisioning.cell.status import picture
from provisioning.cell.status.groups import groups_in
from provisioning.cell.status.picture import Picture, damaged_in, topics_in, unbilled_in

NOW_MS = 1_700_000_000_000


def record(changes=(), **fields):
    head = {"v": 1, "incarnation": 7, "next": "7.0.1", "connections": [2, 1]}
    return orjson.dumps(head | {"changes": changes} | fields)


def picture_of(*changes, slot=0):
    taken = Picture(slot)
    taken.take(record(changes))
    return taken


def sample_at(taken_at_ms, content):
    return Sample(taken_at_ms=taken_at_ms, content=content)


def test_entries_replace_each_other_and_are_removed():
    taken = Picture()
    assert taken.take(record([["t", 1, "a"], ["t", 2, "b"]], more=1))
    completeness = [taken.complete]
    assert not taken.take(record([["t", 1, "c"], ["-", ["t", 2]]]))
    completeness.append(taken.complete)
    assert completeness == [False, True]
    assert taken.entries("t") == {(1,): ("c", None)}
    taken.take(record([["t", 9, "d"]], anew=1, loading=1, cut=1))
    assert taken.entries("t") == {(9,): ("d", None)}
    assert (taken.complete, taken.cut) == (False, True)
    assert (taken.connections, taken.next) == (1, "7.0.1")


def test_what_a_later_release_adds_is_passed_over():
    taken = picture_of(["t", 1, "a", "id", "more"], ["future", 1, {}], ["-", ["future", 1]])
    assert taken.entries("t") == {(1,): ("a", "id")}


def test_what_an_earlier_release_leaves_out_is_unknown():
    taken = picture_of(["t", 1, "a"], ["t", 2, "b", None])
    assert taken.entries("t") == {(1,): ("a", None), (2,): ("b", None)}


def test_what_is_not_billed_is_summed_over_brokers_without_the_services_own():
    pictures = [
        picture_of(["u", 1, "User:a", 9, 9, 0.1, 7], ["u", 2, "User:__freshet", 0, 0, 0, 50]),
        picture_of(["u", 4, "User:a", 1, 1, 0.1, 5], ["u", 5, "User:b", 1, 1, 0.1, 0]),
        # Of a broker of an earlier release it is not known.
        picture_of(["u", 1, "User:c", 9, 9, 0.1]),
    ]
    assert unbilled_in(pictures) == {"User:a": 12}


def test_damage_is_that_of_the_topic_which_has_the_name_now():
    taken = picture_of(["t", 1, "orders", "first"], ["p", 1, 0, 0, 90, 100, 30])
    assert damaged_in([taken]) == (("orders", 0, 30, "first"),)
    # The topic was deleted and made anew: its partitions change before its id does.
    taken.take(record([["p", 1, 0, 0, 90, 100, 70]]))
    assert damaged_in([taken]) == (("orders", 0, 70, "first"),)
    taken.take(record([["t", 1, "orders", "second"]]))
    assert damaged_in([taken]) == (("orders", 0, 70, "second"),)
    taken.take(record([["-", ["p", 1, 0]], ["t", 1, "orders", None]]))
    assert damaged_in([taken]) == ()


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        record(v=2),
        record(next=7),
        record(next="7.0.1\r\nx: y"),
        record(next="²"),
        record(connections=[1]),
        record(connections=[1, -1]),
        record(connections=[1, True]),
        record(changes=7),
        record(changes=[7]),
        record(changes=[[]]),
        record(changes=[[[]]]),
        record(changes=[["-", []]]),
        record(changes=[["-", ["t"]]]),
        record(changes=[["t"]]),
        record(changes=[["t", 1]]),
        record(changes=[["t", "1", "a"]]),
        record(changes=[["t", True, "a"]]),
        record(changes=[["t", 1, {}]]),
        record(changes=[["t", 1, "a", 7]]),
        record(changes=[["p", 1, 0, 0, 9.5, 0, None]]),
        record(changes=[["o", 1, 1, 0, None, None, 0]]),
        record(changes=[["g", 1, "name", "Stable", "consumer", None, 0]]),
    ],
)
def test_what_is_no_record_is_refused(hostile):
    with pytest.raises(ValueError):  # noqa: PT011 (of the reader or of JSON)
        Picture().take(hostile)


def test_more_entries_than_a_broker_has_are_refused(monkeypatch):
    monkeypatch.setattr(picture, "ENTRIES_MAX", 3)
    taken = picture_of(*(["t", number, "a"] for number in range(3)))
    with pytest.raises(ValueError, match="more entries"):
        taken.take(record([["t", 3, "a"]]))


def test_brokers_add_up():
    """A group's coordinator need not lead the partitions that it reads."""
    first = picture_of(
        ["t", 1, "orders"],
        ["p", 1, 0, 0, 10, 100, None],
        ["c", 1, 5, 6, 7],
        ["g", 1, "billing", "Stable", "consumer", "range", 0],
        ["m", 1, 1, "member-1", "client", "10.0.0.1", None],
        ["o", 1, 1, 0, 4, NOW_MS - 9_000, 1],
        ["o", 1, 1, 1, -1, NOW_MS - 8_000, 1],
        ["o", 1, 7, 0, 3, None, 0],
    )
    second = picture_of(["t", 5, "orders"], ["p", 5, 1, 20, 50, 100, 30], ["c", 5, 1, 1, 1], slot=1)
    pictures = [first, second]
    assert topics_in(pictures) == {"orders": [6, 7, 8]}
    assert damaged_in(pictures) == (("orders", 1, 30, ""),)
    (group,) = groups_in(pictures)
    assert (group["group"], group["coordinator"], group["lag"]) == ("billing", 0, 36)
    shown = [
        (entry["partition"], entry["committed"], entry["lag"]) for entry in group["partitions"]
    ]
    assert shown == [(0, 4, 6), (1, None, 30)]
    (member,) = group["members"]
    assert [entry["partition"] for entry in member["assignments"]] == [0, 1]


@pytest.mark.parametrize(
    ("committed", "bounds", "since_ms", "lag", "age_s"),
    [
        (4, (0, 10), NOW_MS - 2_500, 6, 2.5),
        (4, (0, 10), None, 6, None),
        (10, (0, 10), NOW_MS - 2_500, 0, 0.0),
        # It committed after the end was read.
        (12, (0, 10), None, 0, 0.0),
        (-1, (3, 10), NOW_MS - 2_500, 7, 2.5),
        (4, (0, 10), NOW_MS + 5_000, 6, 0.0),
        # Its topic was deleted, or another broker leads it that did not answer.
        (4, None, None, None, None),
    ],
)
def test_lag_is_what_is_between_commit_and_end(committed, bounds, since_ms, lag, age_s):
    changes = [
        ["t", 1, "orders"],
        ["g", 1, "billing", "Empty", "", "", 0],
        ["o", 1, 1, 0, committed, since_ms, 0],
    ]
    if bounds is not None:
        changes.append(["p", 1, 0, *bounds, 0, None])
    content = {"groups": groups_in([picture_of(*changes)]), "topics": {}}
    running = ClusterStatus(observed_generation=1, phase="running", since_ms=1)
    (group,) = sampled_groups(sample_at(NOW_MS - 60_000, content), running, NOW_MS)
    (partition,) = group["partitions"]
    assert (partition["lag"], partition["lag_seconds"]) == (lag, age_s)
    assert "since_ms" not in partition
    assert (group["lag"], group["lag_seconds"]) == (lag, age_s)


def test_a_group_of_a_sleeping_cluster_keeps_its_lag():
    partition = {"topic": "a", "partition": 0, "committed": 1, "end": 2, "lag": 1}
    group = {"group": "g", "partitions": [{**partition, "since_ms": NOW_MS - 3_000}], "lag": 1}
    sample = sample_at(NOW_MS, {"groups": [group]})
    asleep = ClusterStatus(observed_generation=1, phase="asleep", since_ms=NOW_MS)
    for status in (asleep, None):
        (shown,) = sampled_groups(sample, status, NOW_MS + 86_400_000)
        assert shown["lag_seconds"] == 3.0
    running = ClusterStatus(observed_generation=1, phase="running", since_ms=NOW_MS)
    (shown,) = sampled_groups(sample, running, NOW_MS + 1_000)
    assert shown["lag_seconds"] == 4.0
    assert sampled_groups(None, running, NOW_MS) == []


def test_a_group_that_an_earlier_release_stored_is_as_it_was():
    partition = {"topic": "a", "partition": 0, "lag": 1, "lag_seconds": 7.5}
    group = {"group": "g", "partitions": [partition], "lag": 1, "lag_seconds": 7.5}
    assert sampled_groups(sample_at(1, {"groups": [group]}), None, NOW_MS) == [group]
