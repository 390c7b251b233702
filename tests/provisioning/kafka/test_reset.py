"""Resetting a group's offsets: every kind of target, the plan, and refusals."""

import pytest
from confluent_kafka import Consumer

from provisioning.kafka import (
    GroupActiveError,
    RefusedError,
    Target,
    UnknownPartitionError,
    describe_group,
    reset_offsets,
)
from tests.provisioning.kafka.clients import commit, produce_records, settings

T0 = 1_700_000_000_000


@pytest.fixture
def filled(access, topic):
    """A topic with ten records in each of three partitions, one per second from T0."""
    produce_records(access, topic, [(n % 3, b"x", T0 + n // 3 * 1000) for n in range(30)])
    return topic


def committed(access, group):
    entries = describe_group(access, group)["partitions"]
    return {(entry["topic"], entry["partition"]): entry["committed"] for entry in entries}


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (Target("earliest"), 0),
        (Target("latest"), 10),
        (Target("offset", 7), 7),
        (Target("offset", 99), 10),
        (Target("timestamp", T0 + 2_500), 3),
        (Target("timestamp", T0 + 60_000), 10),
        (Target("shift", -2), 3),
        (Target("shift", 2), 7),
        (Target("shift", -99), 0),
    ],
)
def test_plan_is_what_is_done(access, filled, name, target, offset):
    commit(access, name, {(filled, 0): 5, (filled, 2): 5})
    plan = reset_offsets(access, name, target, dry_run=True)
    assert [(p["partition"], p["current"], p["target"]) for p in plan] == [
        (0, 5, offset),
        (2, 5, offset),
    ]
    assert {p["lag_after"] for p in plan} == {10 - offset}
    assert committed(access, name) == {(filled, 0): 5, (filled, 2): 5}
    assert reset_offsets(access, name, target) == plan
    assert committed(access, name) == {(filled, 0): offset, (filled, 2): offset}


def test_named_topics_and_partitions_need_no_commit_before(access, filled, name):
    plan = reset_offsets(access, name, Target("latest"), partitions={filled: None})
    assert [(p["partition"], p["current"], p["target"]) for p in plan] == [
        (0, None, 10),
        (1, None, 10),
        (2, None, 10),
    ]
    reset_offsets(access, name, Target("earliest"), partitions={filled: [1]})
    assert committed(access, name) == {(filled, 0): 10, (filled, 1): 0, (filled, 2): 10}


def test_nothing_to_start_from_is_refused(access, filled, name):
    with pytest.raises(RefusedError, match="no committed offsets"):
        reset_offsets(access, name, Target("earliest"))
    with pytest.raises(RefusedError, match="nothing to shift"):
        reset_offsets(access, name, Target("shift", 1), partitions={filled: [0]})
    for partitions in ({"no-such-topic": None}, {filled: [3]}):
        with pytest.raises(UnknownPartitionError):
            reset_offsets(access, name, Target("earliest"), partitions=partitions)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_group_with_members_is_refused_with_kafkas_reason(access, filled, name, dry_run):
    consumer = Consumer(settings(access.connection) | {"group.id": name})
    consumer.subscribe([filled])
    while not consumer.assignment():
        consumer.poll(0.1)
    with pytest.raises(GroupActiveError, match="is inactive, but the current state is Stable"):
        reset_offsets(access, name, Target("earliest"), partitions={filled: None}, dry_run=dry_run)
    consumer.close()
    reset_offsets(access, name, Target("earliest"), partitions={filled: None}, dry_run=dry_run)


def test_a_member_that_comes_after_the_look_is_refused_too(access, filled, name, monkeypatch):
    consumer = Consumer(settings(access.connection) | {"group.id": name})
    consumer.subscribe([filled])
    while not consumer.assignment():
        consumer.poll(0.1)
    monkeypatch.setattr("provisioning.kafka.reset.INACTIVE", frozenset({"Stable"}))
    with pytest.raises(GroupActiveError, match="inactive"):
        reset_offsets(access, name, Target("earliest"), partitions={filled: None})
    consumer.close()
