"""A cluster of three brokers as pods, one in each zone, of which one is killed."""

import asyncio

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.secrets import SUPER_USER, super_password
from provisioning.cell.drivers.kubernetes.manifests import namespace_of
from provisioning.cell.drivers.kubernetes.observe import slot_of
from tests.kubernetes.client import Client
from tests.kubernetes.pod_process import Processes
from tests.kubernetes.rig import KubernetesRig
from tests.kubernetes.stand_in_kubelet import StandInKubelet
from tests.provisioning.driver_conformance import accepted, driving, names_of
from tests.supervisor.run import wait_until

pytestmark = pytest.mark.full

SLOTS = 3
ZONES = [f"zone-{number}" for number in range(SLOTS)]
TOPIC = "orders"
PARTITIONS = 6
# A test that reaches it fails.
TIMEOUT_S = 60


@pytest.fixture
def rig(control_plane, keeper_rights, tmp_path):
    client = Client(control_plane.kubeconfig("stand-in-kubelet"))
    processes = Processes(client, tmp_path / "pods")
    kubelet = StandInKubelet(client, processes, [f"node-{number}" for number in range(SLOTS)])
    yield KubernetesRig(tmp_path, keeper_rights, processes)
    kubelet.close()


class Clients:
    """Kafka clients of one cluster. They know the address of one broker at first."""

    def __init__(self, cluster_id):
        self._login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": SUPER_USER,
            "sasl.password": super_password(bytes(32), cluster_id),
        }

    def _at(self, broker, **more):
        return {**self._login, "bootstrap.servers": broker.endpoints.kafka, **more}

    def zones(self, broker):
        """The zone of each broker that this one names, by slot."""
        admin = AdminClient(self._at(broker))
        described = admin.describe_cluster(request_timeout=TIMEOUT_S).result(TIMEOUT_S)
        return {node.id: node.rack for node in described.nodes}

    def make_topic(self, broker):
        admin = AdminClient(self._at(broker))
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(TIMEOUT_S)

    def leader(self, broker, partition):
        """The slot of the broker that leads a partition, as this broker says."""
        topics = AdminClient(self._at(broker)).list_topics(TOPIC, timeout=TIMEOUT_S).topics
        return topics[TOPIC].partitions[partition].leader

    def produce(self, broker, value):
        """Produces a record to each partition, and waits until all are acknowledged."""
        producer = Producer(self._at(broker, **{"enable.idempotence": True}))
        errors = []

        def delivered(error, _message):
            errors.append(error)

        for partition in range(PARTITIONS):
            producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
        assert producer.flush(TIMEOUT_S) == 0
        assert errors == [None] * PARTITIONS

    def values(self, broker, count):
        """Reads as many records of each partition: partition → values, in their order."""
        consumer = Consumer(self._at(broker, **{"group.id": "g"}))
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}

        def is_complete():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                values[message.partition()].append(message.value())
            return all(len(of) == count for of in values.values())

        wait_until(is_complete, "all records were read", TIMEOUT_S)
        consumer.close()
        return values


def test_others_serve_while_a_killed_broker_is_replaced(rig, admin):
    clients = Clients(rig.cluster)

    def zones_of_pods():
        pods = admin.get(f"/api/v1/namespaces/{namespace_of(rig.cluster)}/pods")["items"]
        nodes = {slot_of(pod): pod["spec"]["nodeName"] for pod in pods}
        return {slot: node.replace("node", "zone") for slot, node in nodes.items()}

    def all_are_known(broker):
        return len(clients.zones(broker)) == SLOTS

    async def scenario():
        async with driving(rig) as watched:
            await accepted(lambda: watched.driver.apply(rig.plan_of_several(SLOTS)))
            seen = await watched.until(lambda seen: len(names_of(seen)) == SLOTS)
            first, brokers = names_of(seen), seen.brokers
            await asyncio.to_thread(
                wait_until, lambda: all(map(all_are_known, brokers)), "each broker knows the others"
            )
            # A broker knows the zone of its node, and they are spread over zones.
            zones = await asyncio.to_thread(clients.zones, brokers[0])
            assert sorted(zones.values()) == ZONES
            assert zones == await asyncio.to_thread(zones_of_pods)
            await asyncio.to_thread(clients.make_topic, brokers[0])
            await asyncio.to_thread(clients.produce, brokers[1], b"before")
            dead = await asyncio.to_thread(clients.leader, brokers[0], 0)
            rig.crash(brokers[dead])
            other = brokers[(dead + 1) % SLOTS]
            await asyncio.to_thread(clients.produce, other, b"meanwhile")
            seen = await watched.until(
                lambda seen: names_of(seen).get(dead, first[dead]) != first[dead]
            )
            assert names_of(seen) == {**first, dead: names_of(seen)[dead]}, "the others go on"
            replaced = seen.brokers[dead]
            await asyncio.to_thread(wait_until, lambda: all_are_known(replaced), "all brokers")
            await asyncio.to_thread(clients.produce, replaced, b"after")
            assert await asyncio.to_thread(clients.values, replaced, 3) == {
                partition: [b"before", b"meanwhile", b"after"] for partition in range(PARTITIONS)
            }

    asyncio.run(scenario())
