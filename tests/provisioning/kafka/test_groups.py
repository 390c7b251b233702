"""Groups and their lag in records."""

import pytest
from confluent_kafka import Consumer

from provisioning.kafka import (
    Access,
    Browse,
    Clients,
    Connection,
    NewRecord,
    RefusedError,
    UnavailableError,
    UnknownGroupError,
    UnknownPartitionError,
    browse,
    describe_group,
    describe_groups,
    list_group_names,
)
from provisioning.kafka import produce as produce_one
from tests.provisioning.kafka.clients import (
    commit,
    create_topic,
    delete_topic,
    produce_records,
    settings,
    topic_names,
)

NOW_MS = 1_700_000_000_000


def lags(group):
    return {
        (entry["topic"], entry["partition"]): (entry["lag"], entry["lag_seconds"])
        for entry in group["partitions"]
    }


def test_lag_is_records_and_no_record_is_read_for_its_age(access, topic, name):
    produce_records(access, topic, [(0, b"x", NOW_MS + n) for n in range(10)])
    produce_records(access, topic, [(1, b"y", NOW_MS)])
    commit(access, name, {(topic, 0): 4, (topic, 1): 1})
    commit(access, f"{name}-2", {(topic, 1): 1})
    behind, read = describe_groups(access, [name, f"{name}-2"])
    assert lags(behind) == {(topic, 0): (6, None), (topic, 1): (0, 0.0)}
    assert (behind["lag"], behind["lag_seconds"], behind["state"]) == (6, None, "Empty")
    assert behind["partitions"][0]["committed"] == 4
    assert behind["partitions"][0]["end"] == 10
    assert (read["lag"], read["lag_seconds"]) == (0, 0.0)


def test_a_deleted_topics_offsets_have_no_end(access, topic, name):
    gone = create_topic(access, f"{topic}-gone", 1)
    produce_records(access, topic, [(0, b"x", NOW_MS)])
    produce_records(access, gone, [(0, b"x", NOW_MS)])
    commit(access, name, {(topic, 0): 1, (gone, 0): 0})
    delete_topic(access, gone)
    group = describe_group(access, name)
    # The broker removes offsets of a deleted topic; until it has, their end is unknown.
    assert lags(group)[topic, 0] == (0, 0.0)
    assert lags(group).get((gone, 0), (None, None)) == (None, None)


def test_members_and_their_partitions_are_shown(access, topic, name):
    consumer_settings = settings(access.connection) | {"client.id": "app", "group.id": name}
    consumer = Consumer(consumer_settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.1)
    group = describe_group(access, name)
    consumer.close()
    assert group["state"] == "Stable"
    assert group["type"] == "classic"
    assert group["protocol"] == "range"
    (member,) = group["members"]
    assert (member["client_id"], member["host"], member["instance_id"]) == (
        "app",
        "127.0.0.1",
        None,
    )
    assert [entry["partition"] for entry in member["assignments"]] == [0, 1, 2]
    assert describe_group(access, name)["members"] == []


def test_an_unknown_group_is_none(access, name):
    with pytest.raises(UnknownGroupError, match=name):
        describe_group(access, name)


def test_groups_are_listed_by_name(access, topic, name):
    names = [f"{name}-{n}" for n in range(3)]
    for group in reversed(names):
        commit(access, group, {(topic, 0): 0})
    assert [listed for listed in list_group_names(access) if listed in names] == names


def test_looking_leaves_no_group_behind(access, topic, name):
    produce_records(access, topic, [(0, b"x", NOW_MS)])
    commit(access, name, {(topic, 0): 0})
    describe_group(access, name)
    assert "freshet-console" not in list_group_names(access)


def test_looking_at_an_unknown_topic_creates_none(access, name):
    with pytest.raises(UnknownPartitionError):
        browse(access, name, Browse())
    with pytest.raises(UnknownPartitionError):
        produce_one(access, name, NewRecord(value=b"x"))
    assert name not in topic_names(access)


def test_a_broker_that_is_not_there_is_unavailable():
    gone = Access(Clients(), Connection("127.0.0.1:9", "any"))
    with pytest.raises(UnavailableError, match="Connection refused"):
        list_group_names(gone, timeout_s=1.0)
    with pytest.raises(UnavailableError, match="Connection refused"):
        describe_group(gone, "any", timeout_s=1.0)


def test_a_wrong_password_is_refused_in_the_brokers_words(access):
    """The brokers did answer, so nobody is sent to look for a network's fault."""
    wrong = Access(Clients(), Connection(access.connection.bootstrap, "wrong"))
    with pytest.raises(RefusedError, match=r"SASL_AUTHENTICATION_FAILED: .*invalid credentials"):
        list_group_names(wrong, timeout_s=10.0)
