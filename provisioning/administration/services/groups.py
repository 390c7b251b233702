"""Consumer groups: of running brokers as they are, else from the keeper's last sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import change_of, record_audit
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from provisioning import kafka
from provisioning.administration.services.announcing import announced
from provisioning.administration.services.running_groups import DELETED, MOVED, RunningGroups
from provisioning.cells import kafka_errors
from provisioning.clusters.services.brokers import is_serving, require_brokers, sample_of
from provisioning.clusters.services.observation import observe_cluster
from provisioning.models import Cluster

# How many partitions' offsets an entry of the audit log has at most.
AUDITED_MOVES_MAX = 200


@dataclass(frozen=True)
class SeenGroup:
    """A group with the moment at which it was sampled; None where it was read from brokers now."""

    group: Mapping[str, Any]
    sampled_at: datetime | None


class Groups:
    """The groups of a cluster: their names at once, their members and lag when asked for."""

    def __init__(self, cluster: Cluster) -> None:
        """Reads the names of all groups. Raises `Unavailable`."""
        self._running = _running_groups(cluster)
        self._sampled: dict[str, SeenGroup] = {}
        self.names: Sequence[str]
        if self._running is None:
            self._sampled = {seen.group["group"]: seen for seen in _sampled_groups(cluster)}
            self.names = sorted(self._sampled)
        else:
            self.names = self._running.names()

    def describe(self, names: Sequence[str]) -> list[SeenGroup]:
        """The groups with these names, in this order, with members and lag."""
        if self._running is None:
            return [self._sampled[name] for name in names]
        return [SeenGroup(group, None) for group in self._running.describe(names)]


def get_group(*, cluster: Cluster, group: str) -> SeenGroup:
    """One group with members and lag. Raises `NotFound`, `Unavailable`."""
    running = _running_groups(cluster)
    if running is not None:
        return SeenGroup(running.describe_one(group), None)
    for seen in _sampled_groups(cluster):
        if seen.group["group"] == group:
            return seen
    raise NotFound


def reset_offsets(  # noqa: PLR0913 (what a reset consists of)
    *,
    actor: Actor,
    cluster: Cluster,
    group: str,
    target: kafka.Target,
    partitions: Mapping[str, list[int] | None] | None,
    dry_run: bool,
    wake: bool,
) -> list[kafka.PlannedOffset]:
    """Moves a group's offsets to `target`; with `dry_run` only returns the plan.

    `partitions` maps a topic to its partitions (None: all of them); without it, all partitions that
    the group committed are moved. Raises `GroupActive`, and as `require_brokers` does.
    """
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        plan = kafka.reset_offsets(access, group, target, partitions=partitions, dry_run=dry_run)
    if not dry_run:
        record_audit(
            actor=actor,
            action=MOVED,
            target_type="group",
            target_id=f"{cluster.pk}/{group}",
            detail={
                "to": target.to,
                "value": target.group or target.value,
                "partitions": len(plan),
                "offsets": _moves(plan),
            },
        )
    return plan


def _moves(plan: Sequence[kafka.PlannedOffset]) -> dict[str, object]:
    """The committed offsets before and after a reset, for the audit log: the first of them.

    The keys name partitions as Kafka does, such as `payments-0`.
    """
    return {
        f"{move['topic']}-{move['partition']}": change_of(move["current"], move["target"])
        for move in plan[:AUDITED_MOVES_MAX]
    }


def delete_group(*, actor: Actor, cluster: Cluster, group: str, wake: bool) -> None:
    """Deletes a group with its committed offsets. Raises `GroupActive`, `NotFound`."""
    access = require_brokers(cluster=cluster, wake=wake)
    locks.lock("group", f"{cluster.pk}/{group}")
    with kafka_errors():
        kafka.describe_group(access, group)
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=DELETED,
            target=("group", f"{cluster.pk}/{group}"),
            detail={"group": group},
        ),
        kafka_errors(),
        # It existed a moment ago: the call reached the brokers twice.
        suppress(kafka.UnknownGroupError),
    ):
        kafka.delete_group(access, group)


def is_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced deletion was made. Raises `ClusterAsleep` until brokers can be asked."""
    access = require_brokers(cluster=Cluster.objects.get(pk=cluster_id), wake=False)
    with kafka_errors():
        return entry.detail["group"] not in kafka.list_group_names(access)


def _running_groups(cluster: Cluster) -> RunningGroups | None:
    observation = observe_cluster(cluster)
    if not is_serving(observation) or observation.cell is None:
        return None
    return RunningGroups(cluster, observation.cell)


def _sampled_groups(cluster: Cluster) -> list[SeenGroup]:
    sample = sample_of(cluster)
    if sample is None:
        return []
    taken_at_ms, groups = sample
    at = datetime.fromtimestamp(taken_at_ms / 1000, UTC)
    return [SeenGroup(group, at) for group in groups]
