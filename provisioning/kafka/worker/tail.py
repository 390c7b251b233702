"""Reads a topic's records as they arrive."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from provisioning.kafka.errors import UndecodableError
from provisioning.kafka.filters import compile_filter
from provisioning.kafka.shapes import TIMEOUT_S, TailBatch
from provisioning.kafka.worker.clients import KafkaClients, assign_partitions, take_messages
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.offsets import earliest_offsets, end_offsets, partitions_of
from provisioning.kafka.worker.ranges import QUIET_S
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
    Raises `UnknownPartitionError`, `UnavailableError`, and `UndecodableError` where a partition has
    more records and gives none: see `ranges`.
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
        watch = _Watch(consumer, topic, at, ends)
        while time.monotonic() < deadline:
            try:
                messages = watch.read_batch()
            except UndecodableError:
                access.taint(consumer)
                raise
            skipped = _skip_backlog(consumer, topic, at)
            yield TailBatch(
                records=[record_of(m) for m in messages if keep is None or keep(Readable(m))],
                positions=dict(at),
                skipped=skipped,
                records_read=len(messages),
                bytes_read=sum(size_of(message) for message in messages),
            )


@dataclass
class _Watch:
    """Reads what arrives. `at` holds the next offset of each partition, and is moved on.

    `ends` holds the offset behind the last record when the tail began, for each partition.
    """

    consumer: Consumer
    topic: str
    at: dict[int, int]
    ends: Mapping[int, int]
    # Partitions that were read to their end, so that nothing is due of them.
    _ended: set[int] = field(default_factory=set)
    _last_s: float = field(default_factory=time.monotonic)

    def read_batch(self) -> list[Message]:
        """The messages of the next quarter second. Raises `UndecodableError`, also where none came.

        None came where a partition has not been read to its end, and gave nothing for a while.
        """
        records: list[Message] = []
        until = time.monotonic() + BATCH_S
        while len(records) < BATCH_RECORDS_MAX and time.monotonic() < until:
            for message in take_messages(self.consumer, BATCH_RECORDS_MAX - len(records), POLL_S):
                error = message.error()
                self._last_s = time.monotonic()
                if error is None:
                    records.append(message)
                    self.at[message.partition()] = message.offset() + 1
                    self._ended.discard(message.partition())
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._ended.add(message.partition())
                elif records:
                    # The error comes again, behind these.
                    return records
                else:
                    raise error_of(error)
        if not records and self._is_due() and time.monotonic() - self._last_s > QUIET_S:
            raise UndecodableError("_BAD_MSG", "a partition gives no record before its end")
        return records

    def _is_due(self) -> bool:
        return any(self.at[n] < end for n, end in self.ends.items() if n not in self._ended)


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
