"""What is asked of a cluster's brokers and what they answer, as both sides of a worker see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

Partition = tuple[str, int]
# (resource type, name, pattern, principal, host, operation, permission), by Kafka's names.
AclFields = tuple[str, str, str, str, str, str, str]

# Of one step of a call, such as one request to a broker.
TIMEOUT_S = 5.0
BYTES_MAX = 8 * 1024 * 1024
LIMIT_MAX = 500


class Bytes(TypedDict):
    """Bytes. `text` where they are UTF-8. Both hold the first 64 KiB of what is longer."""

    base64: str
    text: str | None
    size: int
    truncated: bool


class Header(TypedDict):
    """One header. Names may repeat, and their order counts.

    Of a name that is not UTF-8 `key_base64` holds the bytes, and `key` shows the wrong ones as
    `\\xNN`; else `key_base64` is None.
    """

    key: str
    key_base64: str | None
    value: Bytes | None


class Record(TypedDict):
    """A record. `timestamp_ms` is Unix time; `size` counts key, value and headers, in bytes."""

    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: str | None
    key: Bytes | None
    value: Bytes | None
    headers: list[Header]
    size: int


@dataclass(frozen=True)
class Browse:
    """What to read.

    `filter`: the text of a filter (`filters.py`); what it leaves out is paid for too. `start`:
    `newest` gives the last records, newest first; the others go forward, with `value` an offset or
    a moment (Unix ms). `positions` go on where a page ended; they win over `start`'s place, and
    keep its direction. `partitions`: None for all.
    """

    start: Literal["newest", "oldest", "offset", "timestamp"] = "newest"
    value: int = 0
    partitions: Sequence[int] | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    limit: int = 50
    bytes_max: int = BYTES_MAX
    timeout_s: float = TIMEOUT_S
    filter: str | None = None


class Reached(TypedDict):
    """How far a partition was read: `position` of what `begin` (kept) to `end` there is."""

    partition: int
    position: int
    begin: int
    end: int


@dataclass(frozen=True)
class Page:
    """Records, and where to go on (None: nothing is left in this direction).

    `stopped`: `limit`, `bytes`, `time`, or `end` where all was read. `reached`: by partition; and
    how many records of how many bytes were read for it.
    """

    records: list[Record]
    positions: dict[int, int] | None
    stopped: str
    reached: list[Reached]
    records_read: int
    bytes_read: int


@dataclass(frozen=True)
class TailBatch:
    """What came, perhaps nothing. `positions`: where the next batch begins, by partition.

    `skipped` counts offsets that were left out because records come faster than they are shown;
    `records_read` and `bytes_read` what was looked at, records that a filter left out included.
    """

    records: list[Record]
    positions: dict[int, int]
    skipped: int = 0
    records_read: int = 0
    bytes_read: int = 0


@dataclass(frozen=True)
class NewRecord:
    """A record to produce. Without `partition` the key decides, as with Java's clients."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


class Produced(TypedDict):
    """Where a record went."""

    partition: int
    offset: int
    timestamp_ms: int | None


class AssignedPartition(TypedDict):
    """A partition that a member has."""

    topic: str
    partition: int


class GroupMember(TypedDict):
    """A member. `instance_id` is a static member's own name. `truncated`: whether it has more
    partitions than are told.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignments: list[AssignedPartition]
    truncated: bool


class GroupPartition(TypedDict):
    """What a group committed of a partition. What is unknown is None.

    `committed`, `end`: offsets of the next record. `lag`: records between them. `lag_seconds`:
    age of the first record that is not committed.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_seconds: float | None


class Group(TypedDict):
    """A group. `lag` and `lag_seconds`: the sum and the greatest of its partitions'.

    It is what REST answers and what the keeper stores in a sample, so that a group of a sleeping
    cluster looks like one of a running cluster.
    """

    group: str
    state: str
    type: str
    protocol: str
    coordinator: int | None
    members: list[GroupMember]
    partitions: list[GroupPartition]
    lag: int | None
    lag_seconds: float | None


@dataclass(frozen=True)
class Target:
    """Where to. `value`: the offset, the moment (Unix ms), or the shift in records (may be < 0).

    `group`: whose commits are taken over, to go where another group stands.
    """

    to: Literal["earliest", "latest", "offset", "timestamp", "shift", "group"]
    value: int = 0
    group: str = ""


class PlannedOffset(TypedDict):
    """One partition of a plan. `current` is None where nothing was committed."""

    topic: str
    partition: int
    current: int | None
    target: int
    lag_after: int


class LowWatermark(TypedDict):
    """Where a partition begins after its oldest records went."""

    partition: int
    low_watermark: int
    # Offsets that went, or would go: as many records at most, and fewer in a compacted topic.
    deleted_offsets: int
