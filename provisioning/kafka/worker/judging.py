"""Finds out whether the next batch of a partition can be decoded.

Each batch is decoded by itself, in a process that reads for nobody else: some end it, and on some
librdkafka's thread never returns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, TopicPartition

from provisioning.kafka.errors import UndecodableError
from provisioning.kafka.shapes import TOO_SLOW, UNDECODABLE, BatchHead, Verdict
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.heads import next_head

# How many batches in a row one call judges at most.
RUN_MAX = 1_000


@dataclass
class _Judge:
    access: KafkaClients
    topic: str
    known: Mapping[tuple[int, int, int, int], str]
    deadline: float
    verdicts: list[Verdict] = field(default_factory=list)

    def judge_run(self, partition: int, offset: int) -> bool:
        """Judges batches from an offset on, up to the first that can be decoded.

        Returns whether another partition may be judged in this process.
        """
        for _ in range(RUN_MAX):
            left_s = self.deadline - time.monotonic()
            if left_s <= 0:
                return False
            head = next_head(self.access, self.topic, partition, offset, left_s)
            if head is None:
                return True
            reason = self.known.get(_key_of(head)) or self._reason(head)
            if reason is None:
                return True
            self.verdicts.append(Verdict(**head, reason=reason))
            offset = head["next_offset"]
            if reason == TOO_SLOW:
                return False
        return True

    def _reason(self, head: BatchHead) -> str | None:
        """Why the records of a batch cannot be decoded; None where they can."""
        self.access.announce(head)
        place = TopicPartition(self.topic, head["partition"], head["first_offset"])
        with self.access.batch_consumer() as batches:
            messages = batches.take(place)
            records = sum(message.error() is None for message in messages)
            for message in messages:
                _raise_other(message.error())
            if records >= head["records"]:
                return None
            # It asks for ever larger answers now, or hangs.
            self.access.taint(batches)
            return UNDECODABLE if messages or batches.is_in_vain else TOO_SLOW


def judge(
    access: KafkaClients,
    topic: str,
    positions: Mapping[int, int],
    *,
    known: Sequence[Verdict] = (),
    seconds_max: float,
) -> list[Verdict]:
    """The batches from each position on that cannot be decoded, up to the first that can.

    `positions` holds an offset by partition. The head of a batch is announced before it is decoded.
    `known` holds earlier verdicts, which are not found out again. Ends early, with what was found,
    after `seconds_max` seconds or a batch that never came to an end.
    Raises `UnknownPartitionError`, `RefusedError` and `UnavailableError`.
    """
    reasons = {_key_of(verdict): verdict["reason"] for verdict in known}
    made = _Judge(access, topic, reasons, time.monotonic() + seconds_max)
    for partition, offset in sorted(positions.items()):
        if not made.judge_run(partition, offset):
            break
    return made.verdicts


def _key_of(head: BatchHead) -> tuple[int, int, int, int]:
    return head["partition"], head["first_offset"], head["next_offset"], head["crc"]


def _raise_other(error: KafkaError | None) -> None:
    """Raises an error that is neither the end of a partition nor about decoding."""
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        failure = error_of(error)
        if not isinstance(failure, UndecodableError):
            raise failure
