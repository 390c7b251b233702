"""How far a consumer group is behind, in records and in seconds.

The lag in seconds is the age of the first record that the group has not committed: now minus that
record's timestamp, which is read from the record itself. It is not interpolated between samples, so
it is right at the first look at a group, for a producer that stopped, and for a topic with gaps.
Where the record could not be read in time, the lag is unknown (None), never zero.

Where a batch cannot be decoded, the moment comes from its header, which has that of its first
record.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from brokers import _core
from provisioning.kafka.errors import KafkaCallError, kafka_errors
from provisioning.kafka.offsets import earliest_offsets
from provisioning.kafka.shapes import Partition

# How many partitions are read at a time, of each of which one batch is fetched.
PARTITIONS_AT_A_TIME = 200
FETCH_BYTES_MAX = 4 * 1024 * 1024
FETCH_WAIT_S = 0.1
# How long one batch may take to be decoded.
DECODE_S = 1.0

Position = tuple[Partition, int]


def record_lag(committed: int | None, end: int | None) -> int | None:
    """The records between a committed offset and the end; None where either is unknown."""
    if committed is None or end is None:
        return None
    # It is not negative, also where the group committed after the end was read.
    return max(end - committed, 0)


def first_timestamps(
    client: _core.KafkaClient, positions: Collection[Position], timeout_s: float
) -> dict[Position, int | None]:
    """The timestamp (Unix ms) of the first record at or after each position.

    It is None where no record is left there, but only control records of transactions. A position
    is left out where nothing was read within `timeout_s` seconds, its record has no timestamp, or
    brokers refuse to read its partition.
    """
    deadline = time.monotonic() + timeout_s
    waiting: dict[Partition, list[int]] = {}
    for partition, offset in sorted(set(positions), reverse=True):
        # The lowest stands last.
        waiting.setdefault(partition, []).append(offset)
    timestamps: dict[Position, int | None] = {}
    places = {partition: offsets[-1] for partition, offsets in waiting.items()}
    while places and time.monotonic() < deadline:
        some = dict(list(places.items())[:PARTITIONS_AT_A_TIME])
        for partition in some:
            del places[partition]
        # Behind those that were not looked at yet.
        places |= dict(_read_some(client, some, waiting, timestamps, deadline))
    return timestamps


def _read_some(
    client: _core.KafkaClient,
    places: dict[Partition, int],
    waiting: dict[Partition, list[int]],
    timestamps: dict[Position, int | None],
    deadline: float,
) -> list[tuple[Partition, int]]:
    """Reads one batch of each partition. Returns where to go on, for those with waiting offsets."""
    try:
        fetched = _fetch(client, places, deadline)
    except KafkaCallError:
        if len(places) == 1:
            return []  # its age stays unknown
        # One partition, as of an internal topic, must not hide the others.
        return [
            further
            for partition, place in places.items()
            for further in _read_some(client, {partition: place}, waiting, timestamps, deadline)
        ]
    further = []
    outside = []
    for part in fetched:
        partition = (part.topic, part.partition)
        if part.out_of_range:
            outside.append(partition)
            continue
        place = _read_partition(part, places[partition], waiting[partition], timestamps)
        if waiting[partition] and place is not None:
            further.append((partition, place))
    if outside:
        # Retention has taken the records.
        starts = earliest_offsets(client, outside, max(deadline - time.monotonic(), 0.0))
        further += [(place, start) for place, start in starts.items() if start > places[place]]
    return further


def _fetch(
    client: _core.KafkaClient, places: dict[Partition, int], deadline: float
) -> list[_core.KafkaPartition]:
    with kafka_errors():
        return client.fetch(
            places,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=1,
            wait_s=FETCH_WAIT_S,
            committed_only=False,
            timeout_s=max(deadline - time.monotonic(), 0.0),
        )


def _read_partition(
    part: _core.KafkaPartition,
    place: int,
    offsets: list[int],
    timestamps: dict[Position, int | None],
) -> int | None:
    """Enters the timestamps of a partition's offsets; returns where to go on, None for nowhere."""
    partition = (part.topic, part.partition)
    if place >= part.end:
        timestamps.update({(partition, offset): None for offset in offsets})
        offsets.clear()
        return None
    batch = part.next_batch()
    if batch is None:
        return place
    readable = not batch.control and batch.open(DECODE_S) is None
    while offsets and offsets[-1] < batch.next_offset:
        offset = offsets[-1]
        if readable:
            records = batch.take(offset, 1, 1, 0)
            if not records:
                break
            moment, until = records[0][1], records[0][0]
        elif batch.control:
            break
        else:
            moment, until = batch.timestamp_ms, batch.next_offset - 1
        while offsets and offsets[-1] <= until:
            offset = offsets.pop()
            if moment >= 0:
                timestamps[partition, offset] = moment
    # What is left waits for a record of a later batch.
    return max(batch.next_offset, offsets[-1]) if offsets else None


def seconds_behind(timestamp_ms: int | None, now_ms: int) -> float:
    """The age of the first waiting record; 0 where none waits or its timestamp is in the future."""
    if timestamp_ms is None:
        return 0.0
    return max(now_ms - timestamp_ms, 0) / 1000
