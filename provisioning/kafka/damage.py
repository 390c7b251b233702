"""Batches by their headers, and whether their records can be decoded."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import RefusedError
from provisioning.kafka.offsets import check_partitions, partitions_of
from provisioning.kafka.ranges import DECODE_S, FETCH_WAIT_S
from provisioning.kafka.shapes import TIMEOUT_S, TOO_LARGE, BatchHead, Verdict

# How many batches in a row one call judges at most, and how long it takes but for a last one.
RUN_MAX = 1_000
JUDGE_S = 8.0
FETCH_BYTES_MAX = 256 * 1024


def next_head(access: Access, topic: str, partition: int, offset: int) -> BatchHead | None:
    """The header of the first batch at or after an offset that holds records; None at the end.

    Raises `RefusedError` where the offset lies outside of the log, and `UnknownPartitionError`.
    """
    deadline = time.monotonic() + TIMEOUT_S
    with access.client() as client:
        check_partitions(topic, [partition], partitions_of(client, topic, TIMEOUT_S))
        batch = next(_batches_from(client, topic, partition, offset, deadline), None)
        return None if batch is None else _head_of(partition, batch)


def judge(access: Access, topic: str, positions: Mapping[int, int]) -> list[Verdict]:
    """The batches from an offset of each partition on that cannot be decoded.

    They follow one on the other, up to the first that can be decoded, or that is too large to be
    read here. Raises `UnknownPartitionError`, and `RefusedError` where an offset lies outside of
    the log.
    """
    deadline = time.monotonic() + JUDGE_S
    verdicts: list[Verdict] = []
    with access.client() as client:
        check_partitions(topic, positions, partitions_of(client, topic, TIMEOUT_S))
        for partition, offset in sorted(positions.items()):
            batches = _batches_from(client, topic, partition, offset, deadline)
            for batch in itertools.islice(batches, RUN_MAX):
                with access.computing() as charge:
                    reason, opened_in_s = batch.open(DECODE_S)
                    charge(opened_in_s)
                if reason is None or reason == TOO_LARGE:
                    break
                verdicts.append(Verdict(**_head_of(partition, batch), reason=reason))
    return verdicts


def _batches_from(
    client: _core.KafkaClient, topic: str, partition: int, offset: int, deadline: float
) -> Iterator[_core.KafkaBatch]:
    """The batches from an offset on that hold records, up to the end of the log.

    The first one may begin before the offset.
    """
    while time.monotonic() < deadline:
        (part,) = client.fetch(
            {(topic, partition): offset},
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=FETCH_BYTES_MAX,
            wait_s=FETCH_WAIT_S,
            committed_only=False,
            timeout_s=max(deadline - time.monotonic(), 0.0),
        )
        if part.out_of_range:
            detail = f"{topic} partition {partition} has no offset {offset}"
            raise RefusedError("OFFSET_OUT_OF_RANGE", detail)
        if offset >= part.end:
            return
        while (batch := part.next_batch()) is not None:
            offset = batch.next_offset
            # Compaction leaves batches without records.
            if batch.records > 0:
                yield batch


def _head_of(partition: int, batch: _core.KafkaBatch) -> BatchHead:
    return BatchHead(
        partition=partition,
        first_offset=batch.first_offset,
        next_offset=batch.next_offset,
        records=batch.records,
        crc=batch.crc,
        timestamp_ms=batch.timestamp_ms,
    )
