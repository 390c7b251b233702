"""A cluster of three brokers whose partitions clients have led by brokers that they choose."""

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.brokers.test_several_brokers import (
    SLOTS,
    TIMEOUT_S,
    nodes_of,
    running_brokers,
    start_broker,
)
from tests.supervisor.run import wait_until

TOPIC = "orders"
# Node ids of the replicas of each partition, its leader first. All brokers lead as many, before
# the move and after it: else the controller moves partitions by itself.
ASSIGNED = {0: [2, 0, 1], 1: [0, 1, 2], 2: [1, 2, 0]}
MOVED = {1: [1, 2, 0], 2: [0, 1, 2]}
# The slot of the broker that stops.
STOPPED = SLOTS - 1


@pytest.fixture
def brokers(tmp_path):
    """Slot → its broker."""
    with running_brokers(tmp_path) as running:
        yield running


@pytest.fixture
def admin(brokers):
    client = KafkaAdminClient(bootstrap_servers=brokers[0].bootstrap)
    try:
        yield client
    finally:
        client.close()


def leaders(admin):
    """Partition of the topic → the node that leads it, as some broker knows by now."""
    (topic,) = admin.describe_topics([TOPIC])
    return {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}


def test_partitions_go_to_the_brokers_that_a_client_chooses(admin, brokers):
    topic = NewTopic(TOPIC, replica_assignments=ASSIGNED)
    admin.create_topics([topic], timeout_ms=TIMEOUT_S * 1_000)
    assigned = {index: replicas[0] for index, replicas in ASSIGNED.items()}
    wait_until(lambda: leaders(admin) == assigned, "the assigned brokers lead")

    moved = {TopicPartition(TOPIC, index): replicas for index, replicas in MOVED.items()}
    assert admin.alter_partition_reassignments(moved) == dict.fromkeys(moved)
    chosen = assigned | {index: replicas[0] for index, replicas in MOVED.items()}
    wait_until(lambda: leaders(admin) == chosen, "the chosen brokers lead")
    wait_until(lambda: admin.list_partition_reassignments() == {}, "nothing is to be moved")
    wait_until(lambda: leaders(admin) == chosen, "they lead still")


def test_a_node_that_is_gone_cannot_be_chosen_until_it_is_back(admin, brokers, tmp_path):
    topic = NewTopic(TOPIC, replica_assignments={0: [0, 1, 2]})
    admin.create_topics([topic], timeout_ms=TIMEOUT_S * 1_000)
    moved = TopicPartition(TOPIC, 0)
    before = set(nodes_of(brokers[0]))
    brokers.pop(STOPPED).close()
    wait_until(lambda: set(nodes_of(brokers[0])) < before, "the node is gone")
    refused = admin.alter_partition_reassignments({moved: [STOPPED, 0, 1]})
    assert refused[moved].__name__ == "InvalidReplicationAssignmentError"
    brokers[STOPPED] = start_broker(tmp_path, STOPPED)
    wait_until(lambda: len(nodes_of(brokers[0])) == SLOTS, "the node is back")
    assert admin.alter_partition_reassignments({moved: [STOPPED, 0, 1]}) == {moved: None}
    wait_until(lambda: leaders(admin)[0] == STOPPED, "the chosen broker leads")
