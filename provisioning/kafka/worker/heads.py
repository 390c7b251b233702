"""Reads the header of a batch, and nothing of what the batch holds."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import UnavailableError, UndecodableError, UnknownPartitionError
from provisioning.kafka.shapes import TIMEOUT_S, BatchHead
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import kafka_errors
from provisioning.kafka.worker.wire import Wire

# Base offset, length of what follows, leader epoch, magic, checksum, attributes, last offset's
# delta, two timestamps, producer's id and epoch, first sequence number, count of records.
HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH_COUNTS_FROM = 12
MAGIC = 2
APPEND_TIME = 0x08


def next_head(
    access: KafkaClients, topic: str, partition: int, offset: int, timeout_s: float = TIMEOUT_S
) -> BatchHead | None:
    """The first of `heads_from`; None: there is no further batch. It raises the same errors."""
    return next(heads_from(access, topic, partition, offset, timeout_s), None)


def heads_from(
    access: KafkaClients, topic: str, partition: int, offset: int, timeout_s: float
) -> Iterator[BatchHead]:
    """The headers of the batches from an offset on.

    The first batch may begin before the offset. Batches without records, which compaction leaves,
    are passed over. Each request takes at most `timeout_s` seconds. Raises `RefusedError` where the
    offset lies outside of the log, `UndecodableError`, `UnknownPartitionError` and
    `UnavailableError`.
    """
    with access.admin() as admin:
        address = _leader_address(admin, topic, partition, timeout_s)
    while True:
        deadline = time.monotonic() + timeout_s
        with closing(Wire(access.connection, address, deadline)) as wire:
            fetched = wire.fetch(topic, partition, offset)
            while not fetched.batches and offset < fetched.end:
                # The broker has not read its storage yet. Each try ends by the deadline.
                fetched = wire.fetch(topic, partition, offset)
        if not fetched.batches:
            return
        before = offset
        for head in _heads(partition, fetched.batches):
            if head["next_offset"] > offset:
                offset = head["next_offset"]
                if head["records"] > 0:
                    yield head
        if offset == before:
            detail = f"the brokers' answer has no batch at offset {offset}"
            raise UndecodableError("_BAD_MSG", detail)


def _heads(partition: int, batches: bytes) -> Iterator[BatchHead]:
    """The headers in batches that stand one after another. The last one may be cut off."""
    at = 0
    while at + HEADER.size <= len(batches):
        base, length, _, magic, crc, attributes, delta, *times, _, _, _, count = HEADER.unpack_from(
            batches, at
        )
        if magic != MAGIC or length < HEADER.size - LENGTH_COUNTS_FROM or delta < 0:
            detail = f"the header of the batch at offset {base} has an unknown form"
            raise UndecodableError("_BAD_MSG", detail)
        yield BatchHead(
            partition=partition,
            first_offset=base,
            next_offset=base + delta + 1,
            records=count,
            crc=crc,
            # The time of the append stands where else the largest timestamp does.
            timestamp_ms=times[1 if attributes & APPEND_TIME else 0],
        )
        at += LENGTH_COUNTS_FROM + length


def _leader_address(
    admin: AdminClient, topic: str, partition: int, timeout_s: float
) -> tuple[str, int]:
    with kafka_errors():
        # All topics are listed, because a request for one by name could create it.
        metadata = admin.list_topics(timeout=timeout_s)
    known = metadata.topics.get(topic)
    place = None if known is None or known.error is not None else known.partitions.get(partition)
    if place is None:
        detail = f"{topic} has no partition {partition}"
        raise UnknownPartitionError("UNKNOWN_TOPIC_OR_PARTITION", detail)
    leader = metadata.brokers.get(place.leader)
    if leader is None:
        raise UnavailableError("LEADER_NOT_AVAILABLE", f"{topic}-{partition} has no leader")
    return leader.host, leader.port
