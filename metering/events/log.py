"""Statements of the log: the bytes written to each partition on a day, as its segments hold them.

They are made independently of usage rows: from the manifests of partitions, and not from lanes. So
a row that is lost, made up or counted twice shows as a difference. A statement is JSON, stored once
for a cluster and a past day; `docs/reference/usage-files.md` lists its members.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metering.events.errors import UsageFormatError

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LoggedPartition:
    """Bytes of a partition's record batches on a day.

    The bytes in one lane file count for the day of the partition's last block in that file.
    """

    topic_id: str
    """32 hexadecimal digits."""
    partition: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatement:
    """What the log of a cluster holds of [since, until). Times are milliseconds since 1970."""

    cell: str
    cluster_id: str
    since_ms: int
    until_ms: int
    as_of_ms: int
    """When the partitions' manifests were read."""
    gap: str = ""
    """Why the statement may lack something, in words for people; empty where it is whole."""
    partitions: tuple[LoggedPartition, ...] = ()
    gone_topics: tuple[str, ...] = ()
    """Ids of deleted topics whose manifests are gone, so that their bytes are unknown."""


def encode_statement(statement: LogStatement) -> bytes:
    """The statement as JSON; equal statements give equal bytes."""
    plain = {
        "version": VERSION,
        "cell": statement.cell,
        "cluster_id": statement.cluster_id,
        "since_ms": statement.since_ms,
        "until_ms": statement.until_ms,
        "as_of_ms": statement.as_of_ms,
        "gap": statement.gap,
        "partitions": [
            [partition.topic_id, partition.partition, partition.bytes]
            for partition in sorted(statement.partitions)
        ],
        "gone_topics": sorted(statement.gone_topics),
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def parse_statement(data: bytes) -> LogStatement:
    """A statement from its JSON. Raises `UsageFormatError`."""
    try:
        plain: Mapping[str, Any] = json.loads(data)
        if plain["version"] != VERSION:
            message = f"a log statement of version {plain['version']!r}, not {VERSION}"
            raise UsageFormatError(message)
        return LogStatement(
            cell=str(plain["cell"]),
            cluster_id=str(plain["cluster_id"]),
            since_ms=_count(plain["since_ms"]),
            until_ms=_count(plain["until_ms"]),
            as_of_ms=_count(plain["as_of_ms"]),
            gap=str(plain["gap"]),
            partitions=tuple(
                LoggedPartition(topic_id=str(topic), partition=_count(number), bytes=_count(size))
                for topic, number, size in plain["partitions"]
            ),
            gone_topics=tuple(map(str, plain["gone_topics"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a log statement: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        message = f"{value!r} is no count"
        raise ValueError(message)
    return value
