"""The calls that control plane and keeper make to a cluster's brokers, each through a worker.

All raise `UnavailableError`, `UndecodableError`, `WorkerDiedError` and `WorkersBusyError`, and the
further errors that they name. `wait_acls`, `wait_user` and `wait_topic` raise none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from provisioning.kafka.access import LIMIT_S, Access
from provisioning.kafka.errors import KafkaCallError, WorkerDiedError
from provisioning.kafka.shapes import (
    AclFields,
    BatchHead,
    Group,
    LowWatermark,
    NewRecord,
    PlannedOffset,
    Produced,
    Target,
)

# How long to wait for a change to take effect. Brokers follow the metadata store within tens of
# milliseconds.
EFFECT_S = 2.0


def list_group_names(access: Access) -> list[str]:
    """The names of all groups, sorted. A list needs only names of groups on its other pages."""
    return cast("list[str]", access.call("list_group_names"))


def describe_group(access: Access, group: str) -> Group:
    """Describes a group with its lag. Raises `UnknownGroupError`."""
    return cast("Group", _describe_carefully(access, "describe_group", group))


def describe_groups(access: Access, groups: Iterable[str]) -> list[Group]:
    """Describes groups with their members and lag, in the order of `groups`.

    Seconds of lag that cannot be read in time are None; anything else that is missing raises.
    """
    return cast("list[Group]", _describe_carefully(access, "describe_groups", list(groups)))


def sample_groups(access: Access, *, limit_s: float) -> list[Group]:
    """Describes the first thousand groups by name, for a sample that the keeper stores."""
    return cast("list[Group]", _describe_carefully(access, "sample_groups", limit_s=limit_s))


def delete_group(access: Access, group: str) -> None:
    """Deletes a group and the offsets that it committed.

    Raises `GroupActiveError` while it has members, and `UnknownGroupError`.
    """
    access.call("delete_group", group)


def reset_offsets(
    access: Access,
    group: str,
    target: Target,
    *,
    partitions: Mapping[str, list[int] | None] | None = None,
    dry_run: bool = False,
) -> list[PlannedOffset]:
    """Resets a group's offsets to a target. Returns the plan; with `dry_run` it only plans.

    `partitions` holds partition numbers by topic, None for all of a topic. Without it all
    partitions are reset for which the group committed an offset, or for `to="group"` the other
    group did.

    Raises `GroupActiveError` while the group has members, `UnknownPartitionError`, and
    `RefusedError` where there is no partition to reset, or no committed offset to shift or to copy.
    """
    done = access.call("reset_offsets", group, target, partitions=partitions, dry_run=dry_run)
    return cast("list[PlannedOffset]", done)


def delete_records(
    access: Access, topic: str, before: Mapping[int, int], *, validate_only: bool = False
) -> list[LowWatermark]:
    """Deletes the records before an offset (`before`, by partition; −1 is the partition's end).

    With `validate_only` it only returns what would be deleted. Raises `UnknownPartitionError`, and
    `RefusedError` for an offset beyond the end.
    """
    done = access.call("delete_records", topic, before, validate_only=validate_only)
    return cast("list[LowWatermark]", done)


def produce(access: Access, topic: str, record: NewRecord) -> Produced:
    """Produces one record and waits until it is durable.

    Raises `UnknownPartitionError`, and `RefusedError`, for a record that is too large for example.
    After any other error the record may nevertheless have been written.
    """
    return cast("Produced", access.call("produce", topic, record))


def next_head(access: Access, topic: str, partition: int, offset: int) -> BatchHead | None:
    """The header of the first batch at or after an offset that holds records; None at the end.

    Raises `RefusedError` where the offset lies outside of the log, and `UnknownPartitionError`.
    """
    return cast("BatchHead | None", access.call("next_head", topic, partition, offset))


def end_offset(access: Access, topic: str, partition: int) -> int:
    """The offset of the next record of a partition. Raises `UnknownPartitionError`."""
    return cast("int", access.call("end_offset", topic, partition))


def wait_acls(access: Access, acls: Iterable[AclFields], timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers have these ACLs. Returns False where `timeout_s` passes first."""
    return _is_in_effect(access, "wait_acls", list(acls), timeout_s)


def wait_user(access: Access, user: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a user. Returns False where `timeout_s` passes first."""
    return _is_in_effect(access, "wait_user", user, timeout_s)


def wait_topic(access: Access, topic: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a topic. Returns False where `timeout_s` passes first."""
    return _is_in_effect(access, "wait_topic", topic, timeout_s)


def _describe_carefully(
    access: Access, name: str, *arguments: object, limit_s: float = LIMIT_S
) -> object:
    """Calls a function that describes groups, and repeats it once where that ends the worker.

    The second call is `careful`: librdkafka decodes neither assignments nor records, some of which
    end its process.
    """
    try:
        return access.call(name, *arguments, limit_s=limit_s)
    except WorkerDiedError:
        return access.call(name, *arguments, limit_s=limit_s, careful=True)


def _is_in_effect(access: Access, name: str, argument: object, timeout_s: float) -> bool:
    try:
        return bool(access.call(name, argument, timeout_s))
    except KafkaCallError:
        return False
