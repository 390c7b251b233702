"""What the control plane and the keeper ask of a cluster's brokers. Each is a call of a worker.

All raise `UnavailableError`, `UndecodableError`, `WorkerDiedError` and `WorkersBusyError`, and more
where it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from provisioning.kafka.connection import Connection
from provisioning.kafka.errors import KafkaCallError, WorkerDiedError
from provisioning.kafka.shapes import (
    AclFields,
    Browse,
    Group,
    LowWatermark,
    NewRecord,
    Page,
    PlannedOffset,
    Produced,
    TailBatch,
    Target,
)
from provisioning.kafka.workers import Workers

# A call asks brokers several times, each time for some seconds at most.
LIMIT_S = 30.0
TAIL_S = 600.0
# Brokers follow the metadata store within tens of milliseconds.
EFFECT_S = 2.0


@dataclass(frozen=True)
class Access:
    """The brokers of one cluster, through workers."""

    workers: Workers
    connection: Connection

    def call(
        self, name: str, *arguments: object, limit_s: float = LIMIT_S, **options: object
    ) -> Any:  # noqa: ANN401 (JSON)
        """The result of a worker's function, as JSON has it."""
        return self.workers.call(self.connection, name, *arguments, limit_s=limit_s, **options)


def list_group_names(access: Access) -> list[str]:
    """The names of all groups, sorted: all that a page needs of those that are not on it."""
    return cast("list[str]", access.call("list_group_names"))


def describe_group(access: Access, group: str) -> Group:
    """One group with its lag. Raises `UnknownGroupError` where it neither lives nor committed."""
    return cast("Group", _carefully(access, "describe_group", group))


def describe_groups(access: Access, groups: Iterable[str]) -> list[Group]:
    """Groups with their members and lag, in the order asked for.

    Seconds of lag that cannot be read in time are None; all else that is missing raises.
    """
    return cast("list[Group]", _carefully(access, "describe_groups", list(groups)))


def sample_groups(access: Access, *, limit_s: float) -> list[Group]:
    """The first thousand groups by name, described: what the keeper stores in a sample."""
    return cast("list[Group]", _carefully(access, "sample_groups", limit_s=limit_s))


def delete_group(access: Access, group: str) -> None:
    """Deletes a group with what it committed.

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
    """Moves the group's offsets and gives what was done, or with `dry_run` what would be.

    `partitions`: by topic, None for all of a topic's; without it, all that the group committed,
    or that the other group of `target` did. Raises `GroupActiveError` while the group has members,
    `UnknownPartitionError`, and `RefusedError` where there is nothing to reset, or a shift or the
    other group has nothing to start from.
    """
    done = access.call("reset_offsets", group, target, partitions=partitions, dry_run=dry_run)
    return cast("list[PlannedOffset]", done)


def delete_records(
    access: Access, topic: str, before: Mapping[int, int], *, validate_only: bool = False
) -> list[LowWatermark]:
    """Deletes what lies before an offset of each partition; −1 is its end.

    With `validate_only` it tells what would go. Raises `UnknownPartitionError`, and `RefusedError`
    for an offset beyond the end.
    """
    done = access.call("delete_records", topic, before, validate_only=validate_only)
    return cast("list[LowWatermark]", done)


def browse(access: Access, topic: str, wanted: Browse) -> Page:
    """Reads one page. Raises `UnknownPartitionError`."""
    page = access.call("browse", topic, wanted, limit_s=LIMIT_S + wanted.timeout_s)
    positions = page["positions"]
    return Page(**page | {"positions": None if positions is None else _positions(positions)})


def produce(access: Access, topic: str, record: NewRecord) -> Produced:
    """Produces one record and waits until it is durable.

    Raises `UnknownPartitionError` and `RefusedError` (too large, say). After another error it may
    have been written all the same.
    """
    return cast("Produced", access.call("produce", topic, record))


def tail(
    access: Access,
    topic: str,
    *,
    positions: Mapping[int, int] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    seconds_max: float = TAIL_S,
    filter: str | None = None,  # noqa: A002 (its name in a page's and a stream's query)
) -> Generator[TailBatch]:
    """Batches of new records that a filter keeps, an empty one at least every quarter second.

    Begins at the end, or at `positions` (of an earlier tail). Ends once `stopped` says so or after
    `seconds_max` seconds. Raises `UnknownPartitionError`.
    """
    batches = access.workers.stream(
        access.connection,
        "tail",
        topic,
        positions=positions,
        seconds_max=seconds_max,
        filter=filter,
        limit_s=LIMIT_S,
    )
    try:
        for batch in batches:
            yield TailBatch(**batch | {"positions": _positions(batch["positions"])})
            if stopped():
                return
    finally:
        batches.close()


def end_offset(access: Access, topic: str, partition: int) -> int:
    """The offset of the next record. Raises `UnknownPartitionError`."""
    return cast("int", access.call("end_offset", topic, partition))


def wait_acls(access: Access, acls: Iterable[AclFields], timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers have the entries; False where the time is over first."""
    return _in_time(access, "wait_acls", list(acls), timeout_s)


def wait_user(access: Access, user: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a user; False where the time is over first."""
    return _in_time(access, "wait_user", user, timeout_s)


def wait_topic(access: Access, topic: str, timeout_s: float = EFFECT_S) -> bool:
    """Waits until the brokers know a topic; False where the time is over first."""
    return _in_time(access, "wait_topic", topic, timeout_s)


def _carefully(access: Access, name: str, *arguments: object, limit_s: float = LIMIT_S) -> object:
    """Describes groups; once more where that ends the worker, with assignments left undecoded by
    librdkafka, which some of them end.
    """
    try:
        return access.call(name, *arguments, limit_s=limit_s)
    except WorkerDiedError:
        return access.call(name, *arguments, limit_s=limit_s, careful=True)


def _in_time(access: Access, name: str, wanted: object, timeout_s: float) -> bool:
    try:
        return bool(access.call(name, wanted, timeout_s))
    except KafkaCallError:
        return False


def _positions(positions: Mapping[str, int]) -> dict[int, int]:
    """Offsets by partition, whose numbers JSON writes as texts."""
    return {int(number): offset for number, offset in positions.items()}
