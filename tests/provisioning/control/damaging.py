"""A damaged batch in a topic of a cluster whose broker the test runs."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence

from confluent_kafka import Producer

from brokers import Broker
from console.base.common.conf import config
from provisioning.cells import cluster_store
from tests.brokers.damaging import damage_batch
from tests.brokers.lanes import PartitionId
from tests.provisioning.control.world import access_of
from tests.provisioning.kafka.clients import settings

# Long enough that librdkafka compresses it.
PADDING = "x" * 200


def store_damaged(
    broker: Broker, cluster_id: str, topic: str, values: Sequence[str], damaged: Sequence[int]
) -> None:
    """Stores each value in a batch of its own in partition 0; those at `damaged` are damaged then.

    The topic exists and is empty. The broker is ended and started again on the way.
    """
    producer = Producer(settings(access_of(cluster_id).connection) | {"compression.type": "gzip"})
    for value in values:
        producer.produce(topic, f"{value} {PADDING}", partition=0)
        assert producer.flush(60) == 0
    kafka_id = cluster_store(cluster_id).topic(topic).id
    topic_id = uuid.UUID(bytes=base64.urlsafe_b64decode(kafka_id + "=="))
    broker.crash()
    lanes = config().cell.dfs / cluster_id / "lanes"
    for offset in damaged:
        damage_batch(lanes, PartitionId(topic_id, 0), offset)
    broker.restart()
