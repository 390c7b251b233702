"""Consumer groups: their members, committed offsets and lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import orjson

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import RefusedError, UnavailableError, UnknownGroupError
from provisioning.kafka.lag import first_timestamps, record_lag, seconds_behind
from provisioning.kafka.offsets import end_offsets
from provisioning.kafka.shapes import (
    TIMEOUT_S,
    AssignedPartition,
    Group,
    GroupMember,
    GroupPartition,
    Partition,
)

# The most assigned partitions that a call returns, of all groups together: a member writes its own
# assignment, which would otherwise take any amount of memory in processes that others share.
ASSIGNED_MAX = 20_000
# The most committed offsets that a call returns, of all groups together.
COMMITTED_MAX = 100_000
# Slightly more than a metadata record takes: the keeper cuts a sample and marks it as truncated.
SAMPLE_BYTES_MAX = 768 * 1024
# How many groups a sample describes at a time. It ends once it is full.
SAMPLED_AT_A_TIME = 50


def list_group_names(access: Access, *, timeout_s: float = TIMEOUT_S) -> list[str]:
    """The names of all groups, sorted. A list needs only names of groups on its other pages.

    The group with an empty name, to which old clients commit, is left out: no address of REST could
    name it.
    """
    with access.client() as client:
        return [name for name, *_ in client.list_groups(timeout_s) if name]


def describe_group(access: Access, group: str, *, timeout_s: float = TIMEOUT_S) -> Group:
    """Describes a group with its lag.

    Raises `UnknownGroupError` where it has neither members nor offsets.
    """
    description = describe_groups(access, [group], timeout_s=timeout_s)[0]
    if description["state"] == "Dead" and not description["partitions"]:
        name = "GROUP_ID_NOT_FOUND"
        raise UnknownGroupError(name, f"The group id {group} was not found")
    return description


def describe_groups(
    access: Access,
    groups: Iterable[str],
    *,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Describes groups with their members and lag, in the order of `groups`.

    Seconds of lag that cannot be read within `timeout_s` are None; what brokers say of a group that
    cannot be decoded is left out of it; anything else that is missing raises. `now_ms` is the clock
    (Unix time) by which ages are measured. Raises `RefusedError` for more committed offsets than
    `COMMITTED_MAX`.
    """
    names = list(groups)
    if not names:
        return []
    with access.client() as client:
        return _describe(client, names, timeout_s, now_ms)


def delete_group(access: Access, group: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deletes a group and the offsets that it committed.

    Raises `GroupActiveError` while it has members, and `UnknownGroupError`.
    """
    with access.client() as client:
        client.delete_group(group, timeout_s)


def sample_groups(
    access: Access,
    *,
    limit_s: float,
    groups_max: int = 1_000,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Describes the first `groups_max` groups by name, for a sample that the keeper stores.

    It stops after the group with which they become longer than `SAMPLE_BYTES_MAX` of JSON. Raises
    `UnavailableError` where it takes longer than `limit_s` seconds.
    """
    deadline = time.monotonic() + limit_s
    names = list_group_names(access, timeout_s=min(timeout_s, limit_s))[:groups_max]
    sampled: list[Group] = []
    size = 0
    for at in range(0, len(names), SAMPLED_AT_A_TIME):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise UnavailableError("REQUEST_TIMED_OUT", f"no sample within {limit_s:g} s")
        some = names[at : at + SAMPLED_AT_A_TIME]
        for group in describe_groups(access, some, timeout_s=min(timeout_s, left_s), now_ms=now_ms):
            sampled.append(group)
            size += len(orjson.dumps(group))
            if size > SAMPLE_BYTES_MAX:
                return sampled
    return sampled


def _describe(
    client: _core.KafkaClient, names: Sequence[str], timeout_s: float, now_ms: Callable[[], int]
) -> list[Group]:
    descriptions = client.describe_groups(list(names), ASSIGNED_MAX, timeout_s)
    committed = [offsets or {} for offsets in client.committed_offsets(list(names), timeout_s)]
    if sum(map(len, committed)) > COMMITTED_MAX:
        detail = f"these groups committed more than {COMMITTED_MAX} offsets together"
        raise RefusedError("ANSWER_TOO_LARGE", detail)
    ends = _known_ends(client, {place for offsets in committed for place in offsets}, timeout_s)
    behind = {
        (place, offset)
        for offsets in committed
        for place, offset in offsets.items()
        if record_lag(offset, ends.get(place))
    }
    ages = _ages_by_position(client, behind, timeout_s, now_ms)
    return [
        _make_group(description, _partitions_with_lag(offsets, ends, ages))
        for description, offsets in zip(descriptions, committed, strict=True)
    ]


def _known_ends(
    client: _core.KafkaClient, places: set[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The ends of those partitions that exist; a group may have offsets of a deleted topic."""
    if not places:
        return {}
    known = client.partitions(sorted({topic for topic, _ in places}), timeout_s)
    existing = [(topic, n) for topic, n in places if n in known.get(topic, ())]
    return end_offsets(client, existing, timeout_s)


def _ages_by_position(
    client: _core.KafkaClient,
    waiting: set[tuple[Partition, int]],
    timeout_s: float,
    now_ms: Callable[[], int],
) -> dict[tuple[Partition, int], float]:
    """The lag in seconds by position; positions that could not be read are left out."""
    if not waiting:
        return {}
    timestamps = first_timestamps(client, waiting, timeout_s)
    moment_ms = now_ms()
    return {at: seconds_behind(timestamp_ms, moment_ms) for at, timestamp_ms in timestamps.items()}


def _partitions_with_lag(
    offsets: Mapping[Partition, int],
    ends: Mapping[Partition, int],
    ages: Mapping[tuple[Partition, int], float],
) -> list[GroupPartition]:
    return [
        _group_partition(place, offset, ends.get(place), ages.get((place, offset)))
        for place, offset in sorted(offsets.items())
    ]


def _group_partition(
    partition: Partition, committed: int, end: int | None, age_s: float | None
) -> GroupPartition:
    lag = record_lag(committed, end)
    topic, number = partition
    return GroupPartition(
        topic=topic,
        partition=number,
        committed=committed,
        end=end,
        lag=lag,
        lag_seconds=0.0 if lag == 0 else age_s,
    )


def _make_group(description: _core._Group, partitions: list[GroupPartition]) -> Group:
    lags = [p["lag"] for p in partitions if p["lag"] is not None]
    ages = [p["lag_seconds"] for p in partitions]
    return Group(
        group=description["group"],
        state=description["state"],
        type="classic",
        protocol=description["protocol"],
        coordinator=description["coordinator"],
        members=[_group_member(member) for member in description["members"]],
        partitions=partitions,
        lag=sum(lags) if lags or not partitions else None,
        # Where one age is unknown, so is the maximum.
        lag_seconds=None if None in ages else max((a for a in ages if a is not None), default=0.0),
    )


def _group_member(member: _core._Member) -> GroupMember:
    return GroupMember(
        member_id=member["member_id"],
        client_id=member["client_id"],
        host=member["host"].removeprefix("/"),
        instance_id=member["instance_id"],
        assignments=[
            AssignedPartition(topic=topic, partition=number)
            for topic, numbers in member["assignment"]
            for number in numbers
        ],
        truncated=member["truncated"],
    )
