"""Consumer groups: through Kafka while brokers run, else as the keeper last saw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from provisioning import kafka
from provisioning.administration.services.announcing import announced
from provisioning.cells import broker_access, kafka_errors
from provisioning.clusters.services.brokers import require_brokers, sample_of, serving
from provisioning.clusters.services.observation import observe_cluster
from provisioning.models import Cluster

DELETED = "group.delete"


@dataclass(frozen=True)
class SeenGroup:
    """A group, and when it was seen; None: at this moment."""

    group: Mapping[str, Any]
    sampled_at: datetime | None


class Groups:
    """All groups of a cluster by their names; what else there is of them is read when asked for."""

    def __init__(self, cluster: Cluster) -> None:
        """Reads the names. Raises `Unavailable`."""
        self._access = _running(cluster)
        self._sampled: dict[str, SeenGroup] = {}
        if self._access is None:
            self._sampled = {seen.group["group"]: seen for seen in _sampled(cluster)}
            self.names = sorted(self._sampled)
        else:
            with kafka_errors():
                self.names = kafka.list_group_names(self._access)

    def describe(self, names: Sequence[str]) -> list[SeenGroup]:
        """Some of them, in this order, with members and lag."""
        if self._access is None:
            return [self._sampled[name] for name in names]
        if not names:
            return []
        with kafka_errors():
            found = kafka.describe_groups(self._access, names)
        return [SeenGroup(group, None) for group in found]


def get_group(*, cluster: Cluster, group: str) -> SeenGroup:
    """One group. Raises `NotFound`."""
    access = _running(cluster)
    if access is not None:
        with kafka_errors():
            return SeenGroup(kafka.describe_group(access, group), None)
    for seen in _sampled(cluster):
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
    """Moves a group's offsets, or says what would be moved. Raises `GroupActive`."""
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        plan = kafka.reset_offsets(access, group, target, partitions=partitions, dry_run=dry_run)
    if not dry_run:
        record_audit(
            actor=actor,
            action="group.reset_offsets",
            target_type="group",
            target_id=f"{cluster.pk}/{group}",
            detail={
                "to": target.to,
                "value": target.group or target.value,
                "partitions": len(plan),
            },
        )
    return plan


def delete_group(*, actor: Actor, cluster: Cluster, group: str, wake: bool) -> None:
    """Deletes a group with what it committed. Raises `GroupActive`, `NotFound`."""
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
        # It was there a moment ago: the call came twice.
        suppress(kafka.UnknownGroupError),
    ):
        kafka.delete_group(access, group)


def is_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced deletion was done: a cluster that sleeps is waited for."""
    access = require_brokers(cluster=Cluster.objects.get(pk=cluster_id), wake=False)
    with kafka_errors():
        return entry.detail["group"] not in kafka.list_group_names(access)


def _running(cluster: Cluster) -> kafka.Access | None:
    observation = observe_cluster(cluster)
    if not serving(observation) or observation.cell is None:
        return None
    return broker_access(cluster.pk, observation.cell)


def _sampled(cluster: Cluster) -> list[SeenGroup]:
    sample = sample_of(cluster)
    if sample is None:
        return []
    taken_at_ms, groups = sample
    at = datetime.fromtimestamp(taken_at_ms / 1000, UTC)
    return [SeenGroup(group, at) for group in groups]
