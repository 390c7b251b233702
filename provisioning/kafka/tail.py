"""Reads a topic's records as they arrive."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import ThrottledError
from provisioning.kafka.filters import compile_filter
from provisioning.kafka.offsets import earliest_offsets, end_offsets, partitions_of
from provisioning.kafka.ranges import (
    FETCH_BYTES_MAX,
    FIRST_BYTES,
    Budget,
    Read,
    Reader,
)
from provisioning.kafka.shapes import TIMEOUT_S, TailBatch

TAIL_S = 600.0
# A batch holds the records of at most about this time, and at most so many.
BATCH_S = 0.25
BATCH_RECORDS_MAX = 100
# A tail that is behind the end of a partition by more offsets than this skips to near its end.
BEHIND_MAX = 1_000
# How many bytes of records a batch holds, but for the last one of them.
BATCH_BYTES_MAX = 1024 * 1024
# How long a batch may take, the wait for turns to compute included (`Access.computing`): without a
# turn in that time nothing of it is read yet.
READ_S = 10.0
# How long a tail waits that has used up the quota of those whom it is for.
THROTTLED_S = 1.0


def tail(  # noqa: PLR0913 (what a tail consists of)
    access: Access,
    topic: str,
    *,
    positions: Mapping[int, int] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    seconds_max: float = TAIL_S,
    pause_s: Callable[[TailBatch], float] = lambda _: 0.0,
    filter: str | None = None,  # noqa: A002 (its name in a page's and a stream's query)
) -> Generator[TailBatch]:
    """Yields batches of new records: one every quarter second at least, which may be empty.

    A `filter` leaves records out. The tail begins at the end of the topic, or at `positions` (of an
    earlier tail). It ends once `stopped` returns True, or after `seconds_max` seconds. Between two
    batches with records it waits for a quarter second, or for `pause_s` of the first one where that
    is longer; what it is then far behind by is skipped. It reads for one viewer, who pays for what
    brokers send; while their quota is used up, an empty batch comes every second. Raises
    `UnknownPartitionError`.
    """
    keep = None if filter is None else compile_filter(filter)
    deadline = time.monotonic() + seconds_max
    with access.client() as client:
        pairs = [(topic, number) for number in partitions_of(client, topic, TIMEOUT_S)]
        starts = {n: o for (_, n), o in earliest_offsets(client, pairs, TIMEOUT_S).items()}
        ends = {n: o for (_, n), o in end_offsets(client, pairs, TIMEOUT_S).items()}
        begin = positions or {}
        at = {n: min(max(begin.get(n, end), starts[n]), end) for n, end in ends.items()}
        watch = _Watch(Reader(access, client, topic, Budget(BATCH_BYTES_MAX, deadline), keep), at)
        yield TailBatch([], dict(at))
        resumes_at = 0.0
        while (moment := time.monotonic()) < deadline and not stopped():
            if moment < resumes_at:
                time.sleep(min(BATCH_S, resumes_at - moment))
                if time.monotonic() < resumes_at:
                    yield TailBatch([], dict(watch.at))
                continue
            try:
                batch = watch.read_batch()
            except ThrottledError:
                time.sleep(THROTTLED_S)
                yield TailBatch([], dict(watch.at))
                continue
            yield batch
            if batch.records_read:
                # One that only skipped goes on at once, or it would be behind again.
                resumes_at = max(moment + BATCH_S, time.monotonic() + pause_s(batch))


@dataclass
class _Watch:
    """Reads what arrives. `at` holds the next offset of each partition, and is moved on."""

    reader: Reader
    at: dict[int, int]

    def read_batch(self) -> TailBatch:
        """The next batch: what arrived, or nothing after a quarter second."""
        budget = Budget(BATCH_BYTES_MAX, time.monotonic() + READ_S)
        reader = replace(self.reader, budget=budget)
        read = Read({n: deque(maxlen=BATCH_RECORDS_MAX) for n in self.at}, self.at)
        skipped = 0
        outside: list[int] = []
        for part in self._fetch():
            number = part.partition
            left = BATCH_RECORDS_MAX - sum(map(len, read.records.values()))
            if part.out_of_range:
                outside.append(number)
            elif part.end - self.at[number] > BEHIND_MAX:
                position = self.at[number]
                self.at[number] = part.end - BATCH_RECORDS_MAX
                skipped += self.at[number] - position
            elif left > 0 and budget.bytes_left > 0:
                reader.read_fetched(read, part, part.end, left)
        if outside:
            self._go_into_log(outside)
        return TailBatch(
            records=[record for queue in read.records.values() for record in queue],
            positions=dict(self.at),
            skipped=skipped,
            records_read=budget.records_read,
            bytes_read=budget.bytes_read,
            damaged=read.damaged,
        )

    def _fetch(self) -> list[_core.KafkaPartition]:
        reader = self.reader
        return reader.client.fetch(
            {(reader.topic, number): offset for number, offset in self.at.items()},
            bytes_max=FETCH_BYTES_MAX,
            # Of a busy topic most of a large fetch would be skipped, and is paid for.
            partition_bytes_max=FIRST_BYTES,
            wait_s=BATCH_S,
            committed_only=False,
            timeout_s=TIMEOUT_S,
        )

    def _go_into_log(self, numbers: list[int]) -> None:
        """Moves partitions whose position lies outside of their log to its nearer end."""
        pairs = [(self.reader.topic, number) for number in numbers]
        starts = earliest_offsets(self.reader.client, pairs, TIMEOUT_S)
        ends = end_offsets(self.reader.client, pairs, TIMEOUT_S)
        for _, number in pairs:
            place = (self.reader.topic, number)
            self.at[number] = min(max(self.at[number], starts[place]), ends[place])
