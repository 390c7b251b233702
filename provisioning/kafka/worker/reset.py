"""Moving a group's offsets, with the plan shown before it is done.

The rules are those of Kafka's own tool (`kafka-consumer-groups --reset-offsets`): the group must
have no members, and a target outside what the log still holds is moved to its nearer end.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from provisioning.kafka.errors import GroupActiveError, RefusedError
from provisioning.kafka.shapes import TIMEOUT_S, Partition, PlannedOffset, Target
from provisioning.kafka.worker.clients import Access
from provisioning.kafka.worker.errors import error_of
from provisioning.kafka.worker.groups import committed_offsets, group_state
from provisioning.kafka.worker.offsets import (
    earliest_offsets,
    end_offsets,
    offsets_at,
    partitions_of,
)

INACTIVE = frozenset({"Empty", "Dead"})


def reset_offsets(
    access: Access,
    group: str,
    target: Target,
    *,
    partitions: Mapping[str, list[int] | None] | None = None,
    dry_run: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> list[PlannedOffset]:
    """Moves the group's offsets and gives what was done, or with `dry_run` what would be.

    `partitions`: by topic, None for all of a topic's; without it, all that the group committed,
    or that the other group of `target` did. Raises `GroupActiveError` while the group has members,
    `UnknownPartitionError`, and `RefusedError` where there is nothing to reset, or a shift or the
    other group has nothing to start from.
    """
    with access.admin() as admin:
        state = group_state(admin, group, timeout_s)
        if state not in INACTIVE:
            raise GroupActiveError("NON_EMPTY_GROUP", active_reason(group, state))
        current = committed_offsets(admin, group, timeout_s)
        other = committed_offsets(admin, target.group, timeout_s) if target.to == "group" else {}
        committed = other if target.to == "group" else current
        chosen = _chosen(admin, committed, partitions, timeout_s)
        wanted = _wanted(admin, chosen, target, committed, timeout_s)
        plan = _plan(admin, chosen, current, wanted, timeout_s)
        if not dry_run:
            _commit(admin, group, plan, timeout_s)
    return plan


def active_reason(group: str, state: str) -> str:
    """Why offsets of a group in this state stay, in the words of Kafka's tool."""
    return (
        f"Assignments can only be reset if the group '{group}' is inactive, "
        f"but the current state is {state}."
    )


def _chosen(
    admin: AdminClient,
    current: Mapping[Partition, int],
    partitions: Mapping[str, list[int] | None] | None,
    timeout_s: float,
) -> list[Partition]:
    if partitions is None:
        chosen = sorted(current)
    else:
        chosen = sorted(
            (topic, number)
            for topic, numbers in partitions.items()
            for number in (
                partitions_of(admin, topic, timeout_s) if numbers is None else set(numbers)
            )
        )
    if not chosen:
        detail = "There are no committed offsets: name the topics to reset."
        raise RefusedError("INVALID_REQUEST", detail)
    return chosen


def _wanted(
    admin: AdminClient,
    chosen: list[Partition],
    target: Target,
    committed: Mapping[Partition, int],
    timeout_s: float,
) -> Mapping[Partition, int | None]:
    """Where each partition shall go, by the target alone; None is behind its last record."""
    match target.to:
        case "earliest":
            return dict.fromkeys(chosen, 0)
        case "latest":
            return dict.fromkeys(chosen, None)
        case "offset":
            return dict.fromkeys(chosen, target.value)
        case "timestamp":
            return offsets_at(admin, chosen, target.value, timeout_s)
        case "shift" | "group":
            return _shifted(chosen, committed, target)


def _plan(
    admin: AdminClient,
    chosen: list[Partition],
    current: Mapping[Partition, int],
    wanted: Mapping[Partition, int | None],
    timeout_s: float,
) -> list[PlannedOffset]:
    starts = earliest_offsets(admin, chosen, timeout_s)
    ends = end_offsets(admin, chosen, timeout_s)
    plan = []
    for topic, number in chosen:
        start, end = starts[topic, number], ends[topic, number]
        offset = wanted[topic, number]
        # Nothing at or after the moment: the next record is the first after it.
        offset = end if offset is None else min(max(offset, start), end)
        plan.append(
            PlannedOffset(
                topic=topic,
                partition=number,
                current=current.get((topic, number)),
                target=offset,
                lag_after=end - offset,
            )
        )
    return plan


def _shifted(
    chosen: list[Partition], committed: Mapping[Partition, int], target: Target
) -> dict[Partition, int | None]:
    missing = [partition for partition in chosen if partition not in committed]
    if missing:
        topic, number = missing[0]
        detail = f"Nothing is committed for {topic}-{number}, so there is nothing to shift."
        if target.to == "group":
            detail = f"The group {target.group} committed nothing for {topic}-{number}."
        raise RefusedError("INVALID_REQUEST", detail)
    return {partition: committed[partition] + target.value for partition in chosen}


def _commit(admin: AdminClient, group: str, plan: list[PlannedOffset], timeout_s: float) -> None:
    wanted = [TopicPartition(p["topic"], p["partition"], p["target"]) for p in plan]
    request = ConsumerGroupTopicPartitions(group, wanted)
    answer = admin.alter_consumer_group_offsets([request], request_timeout=timeout_s)
    for entry in answer[group].result().topic_partitions:
        if entry.error is not None:
            failure = error_of(entry.error)
            if isinstance(failure, GroupActiveError):
                # Somebody joined between the look and the change.
                failure = GroupActiveError(failure.name, active_reason(group, "active"))
            raise failure
