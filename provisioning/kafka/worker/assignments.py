"""Decodes assignments as Kafka's own consumers write them (`ConsumerProtocolAssignment.json`).

A member's assignment may be any bytes, because an application can have a format of its own.
"""

from __future__ import annotations

import struct

from provisioning.kafka.shapes import AssignedPartition

# An assignment that claims more partitions than this is not decoded: its lengths may be wrong.
PARTITIONS_MAX = 100_000


def decode_assignment(content: bytes) -> list[AssignedPartition]:
    """The partitions of an assignment, sorted; none where it has another format."""
    try:
        pairs = _decode_pairs(content)
    except (struct.error, UnicodeDecodeError, ValueError):
        return []
    return [AssignedPartition(topic=topic, partition=number) for topic, number in sorted(pairs)]


def _decode_pairs(content: bytes) -> list[tuple[str, int]]:
    version, topics = struct.unpack_from(">hi", content)
    if version < 0 or topics < 0:
        message = "not an assignment"
        raise ValueError(message)
    pairs: list[tuple[str, int]] = []
    at = 6
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", content, at)
        name = content[at + 2 : at + 2 + length]
        at += 2 + len(name)
        (count,) = struct.unpack_from(">i", content, at)
        if len(name) != length or not 0 <= count <= PARTITIONS_MAX - len(pairs):
            message = "not an assignment"
            raise ValueError(message)
        pairs += [(name.decode(), n) for n in struct.unpack_from(f">{count}i", content, at + 4)]
        at += 4 + 4 * count
    return pairs
