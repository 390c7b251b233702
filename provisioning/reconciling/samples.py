"""The sample topic of a user's first cluster, with records to look at."""

from __future__ import annotations

from brokers.errors import ExistsError, NotFoundError
from brokers.metadata import ClusterStore
from provisioning import kafka

CLUSTER_NAME = "first-cluster"
TOPIC = "hello-freshet"
RECORDS = (
    (b"hello", b'{"message": "Hello from Freshet", "number": 1}'),
    (b"hello", b'{"message": "This is a record in your first topic", "number": 2}'),
    (b"next", b'{"message": "Now produce one of your own", "number": 3}'),
)


def has_sample_topic(store: ClusterStore) -> bool:
    """Whether the cluster has the sample topic."""
    try:
        store.topic(TOPIC)
    except NotFoundError:
        return False
    return True


def create_sample_topic(store: ClusterStore) -> None:
    """Creates the sample topic unless it exists. Its one partition keeps the records in order."""
    try:
        store.create_topic(TOPIC, partitions=1)
    except ExistsError:
        return


def produce_samples(access: kafka.Access) -> None:
    """Produces the missing sample records. A record exists if the log is longer than its place.

    So a repeated call produces no record twice, and none after records of the user.
    """
    for place, (key, value) in enumerate(RECORDS):
        if kafka.end_offset(access, TOPIC, 0) == place:
            record = kafka.NewRecord(key=key, value=value, partition=0)
            kafka.produce(access, TOPIC, record)
