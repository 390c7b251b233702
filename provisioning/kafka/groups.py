"""Consumer groups: who is in them, what they committed, how far behind they are.

The JSON here is what REST answers and what the keeper stores in a sample, so that a group of a
sleeping cluster looks like one of a running cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypedDict

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AdminClient,
    ConsumerGroupDescription,
    MemberDescription,
)

from provisioning.kafka.clients import Access
from provisioning.kafka.errors import (
    UnavailableError,
    UnknownGroupError,
    error_of,
    kafka_errors,
)
from provisioning.kafka.lag import first_timestamps, record_lag, seconds_behind
from provisioning.kafka.offsets import Partition, end_offsets

TIMEOUT_S = 5.0
# As Kafka writes them; librdkafka's enumeration has its own spelling.
STATES = {
    "UNKNOWN": "Unknown",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
    "ASSIGNING": "Assigning",
    "RECONCILING": "Reconciling",
}


class AssignedPartition(TypedDict):
    """A partition that a member has."""

    topic: str
    partition: int


class GroupMember(TypedDict):
    """A member. `instance_id` is a static member's own name."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assignments: list[AssignedPartition]


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
    """A group. `lag` and `lag_seconds`: the sum and the greatest of its partitions'."""

    group: str
    state: str
    type: str
    protocol: str
    coordinator: int | None
    members: list[GroupMember]
    partitions: list[GroupPartition]
    lag: int | None
    lag_seconds: float | None


def list_group_names(access: Access, *, timeout_s: float = TIMEOUT_S) -> list[str]:
    """The names of all groups, sorted: all that a page needs of those that are not on it.

    Raises `UnavailableError` where a broker did not answer.
    """
    with access.admin() as admin:
        result = admin.list_consumer_groups(request_timeout=timeout_s).result()
        for error in result.errors:
            raise error_of(error)
    return sorted(listing.group_id for listing in result.valid)


def describe_group(access: Access, group: str, *, timeout_s: float = TIMEOUT_S) -> Group:
    """One group with its lag. Raises `UnknownGroupError` where it neither lives nor committed."""
    found = describe_groups(access, [group], timeout_s=timeout_s)[0]
    if found["state"] == "Dead" and not found["partitions"]:
        name = "GROUP_ID_NOT_FOUND"
        raise UnknownGroupError(name, f"The group id {group} was not found")
    return found


def describe_groups(
    access: Access,
    groups: Iterable[str],
    *,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Groups with their members and lag, in the order asked for.

    Seconds of lag that cannot be read within `timeout_s` are None; all else that is missing
    raises. `now_ms` is the clock that ages are measured by (Unix time).
    """
    names = list(groups)
    if not names:
        return []
    with access.admin() as admin:
        described = admin.describe_consumer_groups(names, request_timeout=timeout_s)
        # All are asked before the first answer is waited for: each is a request of its own.
        asked = {name: _ask_committed(admin, name, timeout_s) for name in names}
        descriptions = [described[name].result() for name in names]
        committed = {name: _committed(asked[name]) for name in names}
        wanted = {partition for offsets in committed.values() for partition in offsets}
        ends = _known_ends(admin, wanted, timeout_s)
    partitions = _with_lag(access, committed, ends, timeout_s, now_ms)
    return [
        _group(description, partitions[name])
        for name, description in zip(names, descriptions, strict=True)
    ]


def delete_group(access: Access, group: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deletes a group with what it committed.

    Raises `GroupActiveError` while it has members, `UnknownGroupError`, `UnavailableError`.
    """
    with access.admin() as admin:
        asked = admin.delete_consumer_groups([group], request_timeout=timeout_s)
        with kafka_errors():
            asked[group].result()


def sample_groups(
    access: Access,
    *,
    groups_max: int = 1_000,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """The first `groups_max` groups by name, described: what the keeper stores in a sample."""
    names = list_group_names(access, timeout_s=timeout_s)[:groups_max]
    return describe_groups(access, names, timeout_s=timeout_s, now_ms=now_ms)


def committed_offsets(admin: AdminClient, group: str, timeout_s: float) -> dict[Partition, int]:
    """What the group committed, by partition."""
    with kafka_errors():
        return _committed(_ask_committed(admin, group, timeout_s))


def _ask_committed(
    admin: AdminClient, group: str, timeout_s: float
) -> Future[ConsumerGroupTopicPartitions]:
    asked = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=timeout_s
    )
    found: Future[ConsumerGroupTopicPartitions] = asked[group]
    return found


def _committed(asked: Future[ConsumerGroupTopicPartitions]) -> dict[Partition, int]:
    answer = asked.result()
    return {
        (entry.topic, entry.partition): entry.offset
        for entry in answer.topic_partitions
        if entry.error is None and entry.offset >= 0
    }


def _known_ends(
    admin: AdminClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """Ends of the partitions that are there; a group may have committed for a deleted topic."""
    with kafka_errors():
        topics = admin.list_topics(timeout=timeout_s).topics
    known = [(t, n) for t, n in partitions if t in topics and n in topics[t].partitions]
    return end_offsets(admin, known, timeout_s)


def _with_lag(
    access: Access,
    committed: dict[str, dict[Partition, int]],
    ends: dict[Partition, int],
    timeout_s: float,
    now_ms: Callable[[], int],
) -> dict[str, list[GroupPartition]]:
    behind = {
        (name, partition): offset
        for name, offsets in committed.items()
        for partition, offset in offsets.items()
        if record_lag(offset, ends.get(partition))
    }
    ages = _ages(access, behind, timeout_s, now_ms)
    return {
        name: [
            _partition(partition, offset, ends.get(partition), ages.get((partition, offset)))
            for partition, offset in sorted(offsets.items())
        ]
        for name, offsets in committed.items()
    }


def _ages(
    access: Access,
    behind: dict[tuple[str, Partition], int],
    timeout_s: float,
    now_ms: Callable[[], int],
) -> dict[tuple[Partition, int], float]:
    """Seconds by position; what could not be read is left out."""
    waiting = {(partition, offset) for (_, partition), offset in behind.items()}
    if not waiting:
        return {}
    try:
        found = first_timestamps(access, waiting, timeout_s)
    except UnavailableError:
        return {}  # offsets are known all the same: seconds stay unknown
    moment_ms = now_ms()
    return {at: seconds_behind(timestamp_ms, moment_ms) for at, timestamp_ms in found.items()}


def _partition(
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


def _group(description: ConsumerGroupDescription, partitions: list[GroupPartition]) -> Group:
    lags = [p["lag"] for p in partitions if p["lag"] is not None]
    ages = [p["lag_seconds"] for p in partitions]
    coordinator = description.coordinator
    return Group(
        group=description.group_id,
        state=state_of(description.state),
        type=_type(description),
        protocol=description.partition_assignor or "",
        coordinator=None if coordinator is None else coordinator.id,
        members=[_member(member) for member in description.members],
        partitions=partitions,
        lag=sum(lags) if lags or not partitions else None,
        # With one age unknown the greatest is unknown.
        lag_seconds=None if None in ages else max((a for a in ages if a is not None), default=0.0),
    )


def _member(member: MemberDescription) -> GroupMember:
    assigned = member.assignment.topic_partitions if member.assignment else []
    pairs = sorted((entry.topic, entry.partition) for entry in assigned)
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host.removeprefix("/"),
        instance_id=member.group_instance_id or None,
        assignments=[AssignedPartition(topic=t, partition=n) for t, n in pairs],
    )


def state_of(state: ConsumerGroupState) -> str:
    """Kafka's name of a group's state."""
    return STATES.get(state.name, "Unknown")


def _type(described: ConsumerGroupDescription) -> str:
    kind = getattr(described, "type", None)
    return kind.name.lower() if kind is not None and kind.name != "UNKNOWN" else "classic"
