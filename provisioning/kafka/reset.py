"""Resets a group's offsets, or only plans that.

The rules are those of Kafka's own tool (`kafka-consumer-groups --reset-offsets`): the group must
have no members, and a target outside of the log's offsets is moved to the nearer end of the log.
"""

from __future__ import annotations

from collections.abc import Mapping

from brokers import _core
from provisioning.kafka.access import Access
from provisioning.kafka.errors import (
    GroupActiveError,
    RefusedError,
    UndecodableError,
    kafka_errors,
)
from provisioning.kafka.offsets import (
    earliest_offsets,
    end_offsets,
    offsets_at,
    partitions_of,
)
from provisioning.kafka.shapes import TIMEOUT_S, Partition, PlannedOffset, Target

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
    """Resets a group's offsets to a target. Returns the plan; with `dry_run` it only plans.

    `partitions` holds partition numbers by topic, None for all of a topic. Without it all
    partitions are reset for which the group committed an offset, or for `to="group"` the other
    group did. `timeout_s` is the limit of each request.

    Raises `GroupActiveError` while the group has members, `UnknownPartitionError`, and
    `RefusedError` where there is no partition to reset, or no committed offset to shift or to copy.
    """
    with access.client() as client:
        state = _group_state(client, group, timeout_s)
        if state not in INACTIVE:
            raise GroupActiveError("NON_EMPTY_GROUP", active_reason(group, state))
        current = _committed_offsets(client, group, timeout_s)
        other = _committed_offsets(client, target.group, timeout_s) if target.to == "group" else {}
        committed = other if target.to == "group" else current
        chosen = _choose_partitions(client, committed, partitions, timeout_s)
        targets = _target_offsets(client, chosen, target, committed, timeout_s)
        plan = _plan_offsets(client, chosen, current, targets, timeout_s)
        if not dry_run:
            _commit_plan(client, group, plan, timeout_s)
    return plan


def active_reason(group: str, state: str) -> str:
    """The reason why a group in this state is not reset, in the words of Kafka's tool."""
    return (
        f"Assignments can only be reset if the group '{group}' is inactive, "
        f"but the current state is {state}."
    )


def _choose_partitions(
    client: _core.KafkaClient,
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
                partitions_of(client, topic, timeout_s) if numbers is None else set(numbers)
            )
        )
    if not chosen:
        detail = "There are no committed offsets: name the topics to reset."
        raise RefusedError("INVALID_REQUEST", detail)
    return chosen


def _target_offsets(
    client: _core.KafkaClient,
    chosen: list[Partition],
    target: Target,
    committed: Mapping[Partition, int],
    timeout_s: float,
) -> Mapping[Partition, int | None]:
    """The offset of the target for each partition, without bounds; None means the log's end."""
    match target.to:
        case "earliest":
            return dict.fromkeys(chosen, 0)
        case "latest":
            return dict.fromkeys(chosen, None)
        case "offset":
            return dict.fromkeys(chosen, target.value)
        case "timestamp":
            return offsets_at(client, chosen, target.value, timeout_s)
        case "shift" | "group":
            return _shifted_offsets(chosen, committed, target)


def _plan_offsets(
    client: _core.KafkaClient,
    chosen: list[Partition],
    current: Mapping[Partition, int],
    targets: Mapping[Partition, int | None],
    timeout_s: float,
) -> list[PlannedOffset]:
    starts = earliest_offsets(client, chosen, timeout_s)
    ends = end_offsets(client, chosen, timeout_s)
    plan = []
    for topic, number in chosen:
        start, end = starts[topic, number], ends[topic, number]
        offset = targets[topic, number]
        # None: no record is at or after the moment, so the next new record will be the first.
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


def _shifted_offsets(
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


def _group_state(client: _core.KafkaClient, group: str, timeout_s: float) -> str:
    (description,) = client.describe_groups([group], 0, timeout_s)
    if description["fault"] is not None:
        raise UndecodableError("CORRUPT_MESSAGE", description["fault"])
    return description["state"]


def _committed_offsets(
    client: _core.KafkaClient, group: str, timeout_s: float
) -> dict[Partition, int]:
    (offsets,) = client.committed_offsets([group], timeout_s)
    if offsets is None:
        detail = f"the committed offsets of {group} cannot be decoded"
        raise UndecodableError("CORRUPT_MESSAGE", detail)
    return offsets


def _commit_plan(
    client: _core.KafkaClient, group: str, plan: list[PlannedOffset], timeout_s: float
) -> None:
    offsets = {(p["topic"], p["partition"]): p["target"] for p in plan}
    try:
        with kafka_errors():
            client.commit_offsets(group, offsets, timeout_s)
    except GroupActiveError as error:
        # A member joined after the group's state was read.
        raise GroupActiveError(error.name, active_reason(group, "active")) from error
