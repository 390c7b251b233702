"""Consumer groups: their members, committed offsets and lag in records.

The lag in seconds is known where nothing waits, and None otherwise: it would take reading records.
A broker's status has it (`provisioning/cell/status`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import RefusedError, UnknownGroupError
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
    access: Access, groups: Iterable[str], *, timeout_s: float = TIMEOUT_S
) -> list[Group]:
    """Describes groups with their members and lag, in the order of `groups`.

    What brokers say of a group that cannot be decoded is left out of it; anything else that is
    missing raises. Raises `RefusedError` for more committed offsets than `COMMITTED_MAX`.
    """
    names = list(groups)
    if not names:
        return []
    with access.client() as client:
        return _describe(client, names, timeout_s)


def delete_group(access: Access, group: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deletes a group and the offsets that it committed.

    Raises `GroupActiveError` while it has members, and `UnknownGroupError`.
    """
    with access.client() as client:
        client.delete_group(group, timeout_s)


def _describe(client: _core.KafkaClient, names: Sequence[str], timeout_s: float) -> list[Group]:
    descriptions = client.describe_groups(list(names), ASSIGNED_MAX, timeout_s)
    committed = [offsets or {} for offsets in client.committed_offsets(list(names), timeout_s)]
    if sum(map(len, committed)) > COMMITTED_MAX:
        detail = f"these groups committed more than {COMMITTED_MAX} offsets together"
        raise RefusedError("ANSWER_TOO_LARGE", detail)
    ends = _known_ends(client, {place for offsets in committed for place in offsets}, timeout_s)
    return [
        _make_group(
            description,
            [_group_partition(place, at, ends.get(place)) for place, at in sorted(offsets.items())],
        )
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


def _group_partition(partition: Partition, committed: int, end: int | None) -> GroupPartition:
    topic, number = partition
    # It is not negative, also where the group committed after the end was read.
    lag = None if end is None else max(end - committed, 0)
    return GroupPartition(
        topic=topic,
        partition=number,
        committed=committed,
        end=end,
        lag=lag,
        lag_seconds=0.0 if lag == 0 else None,
    )


def _make_group(description: _core._Group, partitions: list[GroupPartition]) -> Group:
    lags = [p["lag"] for p in partitions if p["lag"] is not None]
    return Group(
        group=description["group"],
        state=description["state"],
        type="classic",
        protocol_type=description["protocol_type"],
        protocol=description["protocol"],
        coordinator=description["coordinator"],
        members=[_group_member(member) for member in description["members"]],
        partitions=partitions,
        lag=sum(lags) if lags or not partitions else None,
        # Where one age is unknown, so is the maximum.
        lag_seconds=None if any(p["lag_seconds"] is None for p in partitions) else 0.0,
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
