"""The types of requests and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

Partition = tuple[str, int]
# (resource type, name, pattern, principal, host, operation, permission), by Kafka's names.
AclFields = tuple[str, str, str, str, str, str, str]

# The time limit of one step of a call, such as one request to a broker.
TIMEOUT_S = 5.0
# A longer key, value or header is cut to this size; its `size` still counts all bytes.
SHOWN_BYTES_MAX = 65_536
# Of a record that is read alone: more than the largest batch that brokers take by default.
WHOLE_BYTES_MAX = 16 * 1024 * 1024
# The most bytes of records that a page reads by default, and that it has; the most records on it.
BYTES_MAX = 8 * 1024 * 1024
LIMIT_MAX = 500

# Why a batch's records are not shown: see `Damaged`.
UNDECODABLE, TOO_SLOW, TOO_LARGE = "undecodable", "too_slow", "too_large"


class Bytes(TypedDict):
    """Bytes as JSON. `text` is None unless they are UTF-8.

    `base64` and `text` hold the first 64 KiB; then `truncated` is True. `size` counts all bytes.
    """

    base64: str
    text: str | None
    size: int
    truncated: bool


class Header(TypedDict):
    """A header of a record. Names may repeat, and their order counts.

    For a name that is not UTF-8 `key_base64` holds its bytes, and `key` shows the invalid ones as
    `\\xNN`; else `key_base64` is None.
    """

    key: str
    key_base64: str | None
    value: Bytes | None


class Record(TypedDict):
    """A record. `timestamp_ms` is Unix time; `size` is the bytes of key, value and headers."""

    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: str | None
    key: Bytes | None
    value: Bytes | None
    headers: list[Header]
    size: int


class Damaged(TypedDict):
    """Offsets of a batch that is left out: from `first_offset` to before `next_offset`.

    `reason`: `undecodable` where its bytes make no sense, `too_slow` where they were not decoded in
    time, `too_large` where its records are larger than is read here; they may be sound.
    """

    partition: int
    first_offset: int
    next_offset: int
    reason: str


class BatchHead(TypedDict):
    """What the header of a batch says.

    `records`: how many it holds. `crc` is the checksum of what follows it in the batch,
    `timestamp_ms` the moment of its first record (Unix time).
    """

    partition: int
    first_offset: int
    next_offset: int
    records: int
    crc: int
    timestamp_ms: int


class Verdict(BatchHead):
    """A batch that cannot be decoded, and why: see `Damaged`."""

    reason: str


@dataclass(frozen=True)
class Browse:
    """A request for a page of a topic's records.

    - `start`: `newest` reads backwards from the end; the others read forwards, from the first
      record or from `value`, which is an offset or a moment (Unix ms).
    - `partitions`: which to read; None for all.
    - `positions`: where the page before ended, by partition. They replace the place that `start`
      names, and keep its direction.
    - `limit`, `bytes_max`, `timeout_s`: the most records on the page, bytes of records read, and
      seconds.
    - `filter`: the text of a filter (see `filters.py`). Records that it leaves out count towards
      `bytes_max` too.
    - `shown_max`: of key, value and headers at most so many bytes each.
    - `page_bytes_max`: the bytes of records on the page, as they are shown, but for the last one.
    """

    start: Literal["newest", "oldest", "offset", "timestamp"] = "newest"
    value: int = 0
    partitions: Sequence[int] | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    limit: int = 50
    bytes_max: int = BYTES_MAX
    timeout_s: float = TIMEOUT_S
    filter: str | None = None
    shown_max: int = SHOWN_BYTES_MAX
    page_bytes_max: int = BYTES_MAX


class Reached(TypedDict):
    """How far a partition was read: up to `position`, in its offsets from `begin` to `end`."""

    partition: int
    position: int
    begin: int
    end: int


@dataclass(frozen=True)
class Page:
    """A page of records.

    - `positions`: where the next page begins, by partition; None where nothing is left in this
      direction.
    - `stopped`: why the page ended: `limit`, `bytes`, `time`, or `end` where all was read.
    - `reached`: how far each partition was read.
    - `records_read`, `bytes_read`: what was read for the page, records that a filter left out
      included.
    - `damaged`: the batches among the offsets of the page that cannot be decoded, by partition and
      offset.
    """

    records: list[Record]
    positions: dict[int, int] | None
    stopped: str
    reached: list[Reached]
    records_read: int
    bytes_read: int
    damaged: list[Damaged] = field(default_factory=list)


@dataclass(frozen=True)
class TailBatch:
    """The records that arrived since the batch before, if any.

    - `positions`: where the next batch begins, by partition.
    - `skipped`: how many offsets were left out because records arrive faster than they are read.
    - `records_read`, `bytes_read`: what was read, records that a filter left out included.
    - `damaged`: batches before the positions that cannot be decoded, and were left out.
    """

    records: list[Record]
    positions: dict[int, int]
    skipped: int = 0
    records_read: int = 0
    bytes_read: int = 0
    damaged: list[Damaged] = field(default_factory=list)


@dataclass(frozen=True)
class NewRecord:
    """A record to produce. Without `partition` its key decides, as with Java's clients."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


class Produced(TypedDict):
    """Where a produced record was written."""

    partition: int
    offset: int
    timestamp_ms: int | None


class AssignedPartition(TypedDict):
    """A partition that is assigned to a member."""

    topic: str
    partition: int


class GroupMember(TypedDict):
    """A member of a group. `instance_id` is a static member's own name.

    `truncated`: whether it has more partitions than `assignments` holds.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignments: list[AssignedPartition]
    truncated: bool


class GroupPartition(TypedDict):
    """What a group committed for a partition. Unknown values are None.

    - `committed`: the offset that the group reads next; `end`: the offset of the next new record.
    - `lag`: the records between them; `lag_seconds`: the age of the first one of these.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    lag_seconds: float | None


class Group(TypedDict):
    """A consumer group. `lag` is the sum and `lag_seconds` the maximum over its partitions.

    `protocol_type` is such as `consumer` or `connect`, and empty where nobody ever joined it; the
    partitions of members are known of consumers alone.

    REST answers in this form, and the keeper stores it in a sample, so that a group of a sleeping
    cluster looks like one of a running cluster.
    """

    group: str
    state: str
    type: str
    protocol_type: str
    protocol: str
    coordinator: int | None
    members: list[GroupMember]
    partitions: list[GroupPartition]
    lag: int | None
    lag_seconds: float | None


@dataclass(frozen=True)
class Target:
    """The target of a reset of offsets.

    `value` is an offset, a moment (Unix ms) or a shift in records (negative for backwards), by
    `to`. `group` is the group whose committed offsets are copied, with `to="group"`.
    """

    to: Literal["earliest", "latest", "offset", "timestamp", "shift", "group"]
    value: int = 0
    group: str = ""


class PlannedOffset(TypedDict):
    """A partition of a reset's plan. `current` is None where nothing was committed."""

    topic: str
    partition: int
    current: int | None
    target: int
    lag_after: int


class LowWatermark(TypedDict):
    """Where a partition begins after its oldest records were deleted."""

    partition: int
    low_watermark: int
    # How many offsets were or would be deleted. A compacted topic has fewer records than offsets.
    deleted_offsets: int
