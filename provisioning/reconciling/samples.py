"""The sample topic of a user's first cluster, with records to look at."""

from __future__ import annotations

from brokers.errors import ExistsError, NotFoundError
from brokers.metadata import ClusterStore
from provisioning import kafka
from provisioning.clusters.sample_data import RECORDS, TOPIC

CLUSTER_NAME = "first-cluster"


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
