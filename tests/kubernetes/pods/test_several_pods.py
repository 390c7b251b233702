"""A cluster of three brokers in real pods, of which one is killed."""

import dataclasses
import itertools
import sys

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.secrets import SUPER_USER, super_password
from provisioning.cell.drivers.kubernetes.observe import slot_of
from tests.gateway.cells import until
from tests.kubernetes.pods.load import TIMEOUT_S
from tests.kubernetes.pods.node import ZONE

pytestmark = pytest.mark.full

SLOTS = 3
PARTITIONS = 6
NUMBERS = itertools.count()


@pytest.fixture
def spec(cell):
    """The spec of a cluster that has three brokers, and sleeps."""
    cluster_id = f"cl_several{next(NUMBERS)}"
    cell.add_volume(cluster_id)
    spec = dataclasses.replace(cell.add_cluster(cluster_id), generation=2, scale=SLOTS)
    cell.store.cluster(cluster_id).set_scale(SLOTS)
    cell.store.put_spec(spec)
    yield spec
    # Printed, so that a failed test shows it.
    sys.stdout.write(cell.explain(cluster_id))
    cell.remove_cluster(cluster_id)


def test_others_serve_while_the_broker_in_a_pod_is_killed(cell, spec):
    def login(broker):
        """The settings of the service's own client, which knows the address of one broker."""
        return {
            "bootstrap.servers": broker.kafka,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": SUPER_USER,
            "sasl.password": super_password(cell.secret, spec.id),
        }

    def serving():
        status = cell.status(spec.id)
        return () if status is None else status.brokers

    def zones(broker):
        admin = AdminClient(login(broker))
        nodes = admin.describe_cluster(request_timeout=TIMEOUT_S).result(TIMEOUT_S).nodes
        return {node.id: node.rack for node in nodes}

    def produce(broker):
        producer = Producer({**login(broker), "enable.idempotence": True})
        errors = []

        def delivered(error, _message):
            errors.append(error)

        for partition in range(PARTITIONS):
            producer.produce("orders", b"x", partition=partition, on_delivery=delivered)
        assert producer.flush(TIMEOUT_S) == 0
        assert errors == [None] * PARTITIONS

    with cell.keeper():
        cell.store.request_wake(spec.id, requested_at_ms=1, by="test")
        until(lambda: len(serving()) == SLOTS, "all brokers serve")
        brokers = serving()
        expected = dict.fromkeys(range(SLOTS), ZONE)
        until(lambda: all(zones(broker) == expected for broker in brokers), "each knows the others")
        admin = AdminClient(login(brokers[0]))
        admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(TIMEOUT_S)
        produce(brokers[0])
        topics = admin.list_topics("orders", timeout=TIMEOUT_S).topics
        dead = topics["orders"].partitions[0].leader
        (pod,) = [pod for pod in cell.pods(spec.id) if slot_of(pod) == dead]
        killed = cell.kill_process(pod)
        produce(brokers[(dead + 1) % SLOTS])
        cell.wait_other_process(pod, killed)
        until(lambda: len(serving()) == SLOTS, "all brokers serve again")
        until(lambda: zones(serving()[dead]) == expected, "the new one knows the others")
        produce(serving()[dead])
        status = cell.status(spec.id)
        assert status is not None
        assert status.phase == "running"
