"""Produces one record."""

from __future__ import annotations

from provisioning.kafka.access import Access
from provisioning.kafka.offsets import check_partitions, partitions_of
from provisioning.kafka.shapes import NewRecord, Produced

TIMEOUT_S = 10.0


def produce(
    access: Access, topic: str, record: NewRecord, *, timeout_s: float = TIMEOUT_S
) -> Produced:
    """Produces one record and waits until it is durable.

    Raises `UnknownPartitionError`, and `RefusedError`, for a record that is too large for example.
    After any other error the record may nevertheless have been written.
    """
    with access.client() as client:
        known = partitions_of(client, topic, timeout_s)
        if record.partition is not None:
            check_partitions(topic, [record.partition], known)
        partition, offset, timestamp_ms = client.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            partition=record.partition,
            timeout_s=timeout_s,
        )
    return Produced(partition=partition, offset=offset, timestamp_ms=timestamp_ms)
