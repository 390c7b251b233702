"""Consumer groups: their members, committed offsets and lag."""

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
from provisioning.kafka.worker.clients import KafkaClients
from provisioning.kafka.worker.errors import error_of, kafka_errors
from provisioning.kafka.worker.lag import first_timestamps, record_lag, seconds_behind
from provisioning.kafka.worker.offsets import end_offsets

# Kafka's names of group states, by those of librdkafka's enumeration.
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
# librdkafka's errors for a group that it does not describe: one whose protocol type is not that of
# consumers, and one with an assignment that it cannot decode. For the second it sets no error of
# its own, and so returns the one for a closed client.
NOT_DESCRIBED = frozenset({"_INVALID_ARG", "_DESTROY"})
# The most assigned partitions that a call returns, of all groups together: a member writes its own
# assignment, which would otherwise take any amount of memory in processes that others share.
ASSIGNED_MAX = 20_000
# Slightly more than a metadata record takes: the keeper cuts a sample and marks it as truncated.
SAMPLE_BYTES_MAX = 768 * 1024


def list_group_names(access: KafkaClients, *, timeout_s: float = TIMEOUT_S) -> list[str]:
    """The names of all groups, sorted.

    The group with an empty name, to which old clients commit, is left out, because librdkafka
    cannot request it. Raises `UnavailableError` where a broker did not answer.
    """
    with access.admin() as admin:
        result = admin.list_consumer_groups(request_timeout=timeout_s).result()
        for error in result.errors:
            raise error_of(error)
    return sorted(listing.group_id for listing in result.valid if listing.group_id)


def describe_group(
    access: KafkaClients, group: str, *, careful: bool = False, timeout_s: float = TIMEOUT_S
) -> Group:
    """Describes a group. Raises `UnknownGroupError` where it has neither members nor offsets."""
    description = describe_groups(access, [group], careful=careful, timeout_s=timeout_s)[0]
    if description["state"] == "Dead" and not description["partitions"]:
        name = "GROUP_ID_NOT_FOUND"
        raise UnknownGroupError(name, f"The group id {group} was not found")
    return description


def describe_groups(
    access: KafkaClients,
    groups: Iterable[str],
    *,
    careful: bool = False,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Describes groups with their members and lag, in the order of `groups`.

    Seconds of lag that cannot be read within `timeout_s` are None; anything else that is missing
    raises. With `careful` members' assignments are decoded here and not by librdkafka, and no
    records are; static members then have no `instance_id`. `now_ms` is the clock (Unix time) by
    which ages are measured.
    """
    names = list(groups)
    if not names:
        return []
    with access.admin() as admin:
        describe = _describe_undecoded if careful else _describe_decoded
        # All requests are sent before the first answer is awaited, because there is one per group.
        futures = {name: _request_committed(admin, name, timeout_s) for name in names}
        descriptions = describe(admin, names, timeout_s)
        committed = {name: _committed_from(futures[name]) for name in names}
        partitions_committed = {
            partition for offsets in committed.values() for partition in offsets
        }
        ends = _known_ends(admin, partitions_committed, timeout_s)
    partitions = _partitions_with_lag(access, committed, ends, timeout_s, now_ms, careful)
    _cut_assignments(descriptions)
    return [
        _make_group(description, partitions[name])
        for name, description in zip(names, descriptions, strict=True)
    ]


def _cut_assignments(descriptions: Iterable[_Description]) -> None:
    """Cuts assignments to `ASSIGNED_MAX` partitions in all. The first members keep theirs."""
    remaining = ASSIGNED_MAX
    for description in descriptions:
        for member in description.members:
            assigned = member["assignments"]
            member["truncated"] = len(assigned) > remaining
            del assigned[remaining:]
            remaining -= len(assigned)


def delete_group(access: KafkaClients, group: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deletes a group and the offsets that it committed.

    Raises `GroupActiveError` while it has members, `UnknownGroupError`, `UnavailableError`.
    """
    with access.admin() as admin:
        futures = admin.delete_consumer_groups([group], request_timeout=timeout_s)
        with kafka_errors():
            futures[group].result()


def sample_groups(
    access: KafkaClients,
    *,
    groups_max: int = 1_000,
    careful: bool = False,
    timeout_s: float = TIMEOUT_S,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Group]:
    """Describes the first `groups_max` groups by name, for a sample that the keeper stores.

    It stops after the group with which they become longer than `SAMPLE_BYTES_MAX` of JSON.
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
    """The offsets that a group committed, by partition."""
    with kafka_errors():
        return _committed_from(_request_committed(admin, group, timeout_s))


def _request_committed(
    admin: AdminClient, group: str, timeout_s: float
) -> Future[ConsumerGroupTopicPartitions]:
    futures = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=timeout_s
    )
    future: Future[ConsumerGroupTopicPartitions] = futures[group]
    return future


def _committed_from(future: Future[ConsumerGroupTopicPartitions]) -> dict[Partition, int]:
    answer = future.result()
    return {
        (entry.topic, entry.partition): entry.offset
        for entry in answer.topic_partitions
        if entry.error is None and entry.offset >= 0
    }


def _known_ends(
    admin: AdminClient, partitions: Iterable[Partition], timeout_s: float
) -> dict[Partition, int]:
    """The ends of those partitions that exist; a group may have offsets of a deleted topic."""
    with kafka_errors():
        topics = admin.list_topics(timeout=timeout_s).topics
    known = [(t, n) for t, n in partitions if t in topics and n in topics[t].partitions]
    return end_offsets(admin, known, timeout_s)


def _partitions_with_lag(
    access: KafkaClients,
    committed: dict[str, dict[Partition, int]],
    ends: dict[Partition, int],
    timeout_s: float,
    now_ms: Callable[[], int],
    careful: bool,
) -> dict[str, list[GroupPartition]]:
    behind = {
        (name, partition): offset
        for name, offsets in committed.items()
        for partition, offset in offsets.items()
        if record_lag(offset, ends.get(partition))
    }
    ages = _ages_by_position(access, behind, timeout_s, now_ms, careful)
    return {
        name: [
            _group_partition(partition, offset, ends.get(partition), ages.get((partition, offset)))
            for partition, offset in sorted(offsets.items())
        ]
        for name, offsets in committed.items()
    }


def _ages_by_position(
    access: KafkaClients,
    behind: dict[tuple[str, Partition], int],
    timeout_s: float,
    now_ms: Callable[[], int],
    careful: bool,
) -> dict[tuple[Partition, int], float]:
    """The lag in seconds by position; positions that could not be read are left out."""
    waiting = {(partition, offset) for (_, partition), offset in behind.items()}
    if not waiting:
        return {}
    try:
        timestamps = first_timestamps(access, waiting, timeout_s, careful)
    except UnavailableError:
        return {}  # the offsets are known nevertheless, so only the seconds are unknown
    moment_ms = now_ms()
    return {at: seconds_behind(timestamp_ms, moment_ms) for at, timestamp_ms in timestamps.items()}


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


def _make_group(description: _Description, partitions: list[GroupPartition]) -> Group:
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
        # Where one age is unknown, so is the maximum.
        lag_seconds=None if None in ages else max((a for a in ages if a is not None), default=0.0),
    )


def group_state(admin: AdminClient, group: str, timeout_s: float) -> str:
    """Kafka's name of a group's state, `Dead` where there is no such group.

    It uses librdkafka's older call, which does not decode what members wrote.
    """
    return _describe_one_undecoded(admin, group, timeout_s).state


@dataclass(frozen=True)
class _Description:
    """A group as brokers describe it, without its committed offsets."""

    group: str
    state: str
    type: str
    protocol: str
    coordinator: int | None
    members: list[GroupMember]


def _describe_decoded(admin: AdminClient, names: list[str], timeout_s: float) -> list[_Description]:
    futures = admin.describe_consumer_groups(names, request_timeout=timeout_s)
    return [_description_from(admin, name, futures[name], timeout_s) for name in names]


def _description_from(
    admin: AdminClient, name: str, future: Future[ConsumerGroupDescription], timeout_s: float
) -> _Description:
    try:
        description = future.result()
    except KafkaException as error:
        if error.args[0].name() not in NOT_DESCRIBED:
            raise
        return _describe_undecoded(admin, [name], timeout_s)[0]
    kind = description.type.name.lower()
    return _Description(
        group=name,
        state=_state_name(description.state),
        type="classic" if kind == "unknown" else kind,
        protocol=description.partition_assignor or "",
        coordinator=None if description.coordinator is None else description.coordinator.id,
        members=[_group_member(member) for member in description.members],
    )


def _group_member(member: MemberDescription) -> GroupMember:
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


def _state_name(state: ConsumerGroupState) -> str:
    return STATES.get(state.name, "Unknown")


def _describe_undecoded(
    admin: AdminClient, names: list[str], timeout_s: float
) -> list[_Description]:
    """Describes groups with librdkafka's older call, which returns assignments as bytes."""
    return [_describe_one_undecoded(admin, name, timeout_s) for name in names]


def _describe_one_undecoded(admin: AdminClient, name: str, timeout_s: float) -> _Description:
    with kafka_errors(), warnings.catch_warnings():
        # The call that replaces it decodes assignments, and some of them end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        listed = admin.list_groups(name, timeout=timeout_s)
    if not listed:
        return _Description(name, "Dead", "classic", "", None, [])
    (group,) = listed
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
