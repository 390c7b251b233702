"""Consumer groups: who is in them, what they committed, how far behind they are."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass

import orjson
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, MemberDescription

from provisioning.kafka.errors import UnavailableError, UnknownGroupError
from provisioning.kafka.shapes import (
    TIMEOUT_S,
    AssignedPartition,
    Group,
    GroupMember,
    GroupPartition,
    Partition,
)
from provisioning.kafka.worker.assignments import decode_assignment
from provisioning.kafka.worker.clients import Access
from provisioning.kafka.worker.errors import error_of, kafka_errors
from provisioning.kafka.worker.lag import first_timestamps, record_lag, seconds_behind
from provisioning.kafka.worker.offsets import end_offsets

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
# What librdkafka says of a group that it does not describe: one of another protocol type than
# consumers', and one with an assignment that it cannot decode. Of the second it sets no error of
# its own, and so gives the one that stands for a client that was closed.
NOT_DESCRIBED = frozenset({"_INVALID_ARG", "_DESTROY"})
# Of so many assigned partitions a call tells, of all groups together: an assignment is its member's
# own text, and what is told of it takes memory in processes that others share.
ASSIGNED_MAX = 20_000
# A metadata record takes less: whoever stores a sample cuts it, and says so.
SAMPLE_BYTES_MAX = 768 * 1024


def list_group_names(access: Access, *, timeout_s: float = TIMEOUT_S) -> list[str]:
    """The names of all groups, sorted: all that a page needs of those that are not on it.

    The group without a name, which old clients that commit without one make, is left out:
    librdkafka asks for none of it. Raises `UnavailableError` where a broker did not answer.
    """
    with access.admin() as admin:
        result = admin.list_consumer_groups(request_timeout=timeout_s).result()
        for error in result.errors:
            raise error_of(error)
    return sorted(listing.group_id for listing in result.valid if listing.group_id)


def describe_group(
    access: Access, group: str, *, careful: bool = False, timeout_s: float = TIMEOUT_S
) -> Group:
    """One group with its lag. Raises `UnknownGroupError` where it neither lives nor committed."""
    found = describe_groups(access, [group], careful=careful, timeout_s=timeout_s)[0]
    if found["state"] == "Dead" and not found["partitions"]:
        name = "GROUP_ID_NOT_FOUND"
        raise UnknownGroupError(name, f"The group id {group} was not found")
    return found


def describe_groups(
    access: Access,
    groups: Iterable[str],
    *,
    careful: bool = False,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Groups with their members and lag, in the order asked for.

    Seconds of lag that cannot be read within `timeout_s` are None; all else that is missing
    raises. `careful` keeps members' assignments from librdkafka; static members then have no
    `instance_id`. `now_ms` is the clock that ages are measured by (Unix time).
    """
    names = list(groups)
    if not names:
        return []
    with access.admin() as admin:
        describe = _describe_undecoded if careful else _describe
        # All are asked before the first answer is waited for: each is a request of its own.
        asked = {name: _ask_committed(admin, name, timeout_s) for name in names}
        descriptions = describe(admin, names, timeout_s)
        committed = {name: _committed(asked[name]) for name in names}
        wanted = {partition for offsets in committed.values() for partition in offsets}
        ends = _known_ends(admin, wanted, timeout_s)
    partitions = _with_lag(access, committed, ends, timeout_s, now_ms)
    _cut_assignments(descriptions)
    return [
        _group(description, partitions[name])
        for name, description in zip(names, descriptions, strict=True)
    ]


def _cut_assignments(descriptions: Iterable[_Description]) -> None:
    """Leaves `ASSIGNED_MAX` partitions in all, the first members' first."""
    left = ASSIGNED_MAX
    for description in descriptions:
        for member in description.members:
            assigned = member["assignments"]
            member["truncated"] = len(assigned) > left
            del assigned[left:]
            left -= len(assigned)


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
    careful: bool = False,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """The first `groups_max` groups by name, described: what the keeper stores in a sample.

    Those behind the one that makes them longer than a sample may be are left out.
    """
    names = list_group_names(access, timeout_s=timeout_s)[:groups_max]
    groups = describe_groups(access, names, careful=careful, timeout_s=timeout_s, now_ms=now_ms)
    size = 0
    for place, group in enumerate(groups, start=1):
        size += len(orjson.dumps(group))
        if size > SAMPLE_BYTES_MAX:
            return groups[:place]
    return groups


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


def _group(description: _Description, partitions: list[GroupPartition]) -> Group:
    lags = [p["lag"] for p in partitions if p["lag"] is not None]
    ages = [p["lag_seconds"] for p in partitions]
    return Group(
        group=description.group,
        state=description.state,
        type=description.type,
        protocol=description.protocol,
        coordinator=description.coordinator,
        members=description.members,
        partitions=partitions,
        lag=sum(lags) if lags or not partitions else None,
        # With one age unknown the greatest is unknown.
        lag_seconds=None if None in ages else max((a for a in ages if a is not None), default=0.0),
    )


def group_state(admin: AdminClient, group: str, timeout_s: float) -> str:
    """Kafka's name of a group's state, `Dead` where there is no such group.

    It is asked for in the way for which librdkafka decodes nothing of a member's.
    """
    return _undecoded(admin, group, timeout_s).state


@dataclass(frozen=True)
class _Description:
    """What brokers tell of a group, but for what it committed."""

    group: str
    state: str
    type: str
    protocol: str
    coordinator: int | None
    members: list[GroupMember]


def _describe(admin: AdminClient, names: list[str], timeout_s: float) -> list[_Description]:
    asked = admin.describe_consumer_groups(names, request_timeout=timeout_s)
    return [_description(admin, name, asked[name], timeout_s) for name in names]


def _description(
    admin: AdminClient, name: str, asked: Future[ConsumerGroupDescription], timeout_s: float
) -> _Description:
    try:
        found = asked.result()
    except KafkaException as error:
        if error.args[0].name() not in NOT_DESCRIBED:
            raise
        return _describe_undecoded(admin, [name], timeout_s)[0]
    kind = found.type.name.lower()
    return _Description(
        group=name,
        state=_state(found.state),
        type="classic" if kind == "unknown" else kind,
        protocol=found.partition_assignor or "",
        coordinator=None if found.coordinator is None else found.coordinator.id,
        members=[_member(member) for member in found.members],
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
        truncated=False,
    )


def _state(state: ConsumerGroupState) -> str:
    return STATES.get(state.name, "Unknown")


def _describe_undecoded(
    admin: AdminClient, names: list[str], timeout_s: float
) -> list[_Description]:
    """Asks for each group in librdkafka's older way, which gives assignments as bytes."""
    return [_undecoded(admin, name, timeout_s) for name in names]


def _undecoded(admin: AdminClient, name: str, timeout_s: float) -> _Description:
    with kafka_errors(), warnings.catch_warnings():
        # What is recommended in its place decodes assignments, and ends the process on some.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = admin.list_groups(name, timeout=timeout_s)
    if not found:
        return _Description(name, "Dead", "classic", "", None, [])
    (group,) = found
    if group.error is not None:
        raise error_of(group.error)
    return _Description(
        group=name,
        state=group.state,
        type="classic",
        protocol=group.protocol,
        coordinator=group.broker.id,
        members=[
            GroupMember(
                member_id=member.id,
                client_id=member.client_id,
                host=member.client_host.removeprefix("/"),
                instance_id=None,
                assignments=decode_assignment(member.assignment or b""),
                truncated=False,
            )
            for member in group.members
        ],
    )
