"""Reads a topic's records as they arrive."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.filters import compile_filter
from provisioning.kafka.shapes import TIMEOUT_S, TailBatch
from provisioning.kafka.worker.clients import KafkaClients, assign_partitions, take_messages
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.offsets import earliest_offsets, end_offsets, partitions_of
from provisioning.kafka.worker.records import Readable, record_of, size_of

POLL_S = 0.1
# A batch holds the records of at most this time, and at most so many.
BATCH_S = 0.25
BATCH_RECORDS_MAX = 100
# A tail that is behind the end of a partition by more offsets than this skips to near its end.
BEHIND_MAX = 1_000


def tail(
    access: KafkaClients,
    topic: str,
    *,
    positions: Mapping[int, int] | None,
    seconds_max: float,
    filter: str | None,  # noqa: A002 (as whoever asks names it)
) -> Generator[TailBatch]:
    """Yields batches of new records, at least one every quarter second, which may be empty.

    A `filter` leaves records out. The tail begins at the end of the topic, or at `positions` (of an
    earlier tail), and ends after `seconds_max` seconds.
    Raises `UnknownPartitionError` and `UnavailableError`.
    """
    keep = None if filter is None else compile_filter(filter)
    deadline = time.monotonic() + seconds_max
    with access.admin() as admin:
        pairs = [(topic, number) for number in partitions_of(admin, topic, TIMEOUT_S)]
        starts = {n: o for (_, n), o in earliest_offsets(admin, pairs, TIMEOUT_S).items()}
        ends = {n: o for (_, n), o in end_offsets(admin, pairs, TIMEOUT_S).items()}
    start_positions = positions or {}
    at = {n: min(max(start_positions.get(n, end), starts[n]), end) for n, end in ends.items()}
    with access.consumer() as consumer:
        assign_partitions(consumer, [TopicPartition(topic, n, offset) for n, offset in at.items()])
        yield TailBatch([], dict(at))
        while time.monotonic() < deadline:
            messages = _read_batch(consumer, at)
            skipped = _skip_backlog(consumer, topic, at)
            yield TailBatch(
                records=[record_of(m) for m in messages if keep is None or keep(Readable(m))],
                positions=dict(at),
                skipped=skipped,
                records_read=len(messages),
                bytes_read=sum(size_of(message) for message in messages),
            )


def _read_batch(consumer: Consumer, at: dict[int, int]) -> list[Message]:
    records: list[Message] = []
    until = time.monotonic() + BATCH_S
    while len(records) < BATCH_RECORDS_MAX and time.monotonic() < until:
        for message in take_messages(consumer, BATCH_RECORDS_MAX - len(records), POLL_S):
            error = message.error()
            if error is None:
                records.append(message)
                at[message.partition()] = message.offset() + 1
            elif error.code() != KafkaError._PARTITION_EOF:
                raise error_of(error)
    return records


def _skip_backlog(consumer: Consumer, topic: str, at: dict[int, int]) -> int:
    """Moves a tail that is far behind to near the end. Returns how many offsets that skips."""
    skipped = 0
    for number, position in at.items():
        partition = TopicPartition(topic, number)
        _, end = consumer.get_watermark_offsets(partition, cached=True)
        if end - position > BEHIND_MAX:
            at[number] = end - BATCH_RECORDS_MAX
            skipped += at[number] - position
            consumer.seek(TopicPartition(topic, number, at[number]))
    return skipped
