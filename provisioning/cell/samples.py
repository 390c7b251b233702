"""The groups of a sample, as the keeper stores them and as people see them.

The keeper stores when the first waiting record of each partition was made, and not how long ago
that is: so a sample of a cluster in which nothing happens does not change, and the lag in seconds
is right at whatever moment somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brokers.metadata_records import ClusterStatus
from provisioning.cell.sample_files import TakenSample

RUNNING = "running"
GROUPS = "groups"
TOPICS = "topics"
CONNECTIONS = "connections"
# Topics in which brokers keep state of their own (`brokers/core/crates/metadata/src/names.rs`).
INTERNAL_TOPICS = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
)
# Where a stored partition has the time of its first waiting record (Unix ms; None where unknown).
SINCE = "since_ms"


def sampled_groups(
    sample: TakenSample | None, status: ClusterStatus | None, now_ms: int
) -> list[dict[str, Any]]:
    """The groups of a cluster's last sample; none where there is none.

    Their lag in seconds is that of `now_ms` (Unix ms) while the cluster runs. While it sleeps the
    groups keep the lag that they had.
    """
    if sample is None:
        return []
    running = status is not None and status.phase == RUNNING
    return groups_at(sample.content, now_ms if running else sample.taken_at_ms)


def groups_at(content: Mapping[str, Any], now_ms: int) -> list[dict[str, Any]]:
    """The groups of a sample's content with their lag in seconds at `now_ms` (Unix ms).

    They have the fields of `provisioning.kafka.Group`. Groups that an earlier release stored have
    their lag in seconds as it was then.
    """
    return [_group_at(group, now_ms) for group in content.get(GROUPS, [])]


def _group_at(group: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    if not any(SINCE in partition for partition in group.get("partitions", [])):
        # Without partitions there is no lag; or else an earlier release wrote it.
        return {"lag_seconds": 0.0, **group}
    partitions = [_partition_at(partition, now_ms) for partition in group["partitions"]]
    ages = [partition["lag_seconds"] for partition in partitions]
    # Where one age is unknown, so is the maximum.
    return {**group, "partitions": partitions, "lag_seconds": None if None in ages else max(ages)}


def _partition_at(partition: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    shown = {name: value for name, value in partition.items() if name != SINCE}
    return {**shown, "lag_seconds": age_s(partition["lag"], partition[SINCE], now_ms)}


def age_s(lag: int | None, since_ms: int | None, now_ms: int) -> float | None:
    """The age in seconds of the first waiting record; None where it is unknown.

    It is 0 where none waits, or where its time is in the future.
    """
    if lag == 0:
        return 0.0
    if lag is None or since_ms is None:
        return None
    return max(now_ms - since_ms, 0) / 1000
