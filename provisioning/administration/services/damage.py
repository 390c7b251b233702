"""Moves the beginning of a partition's log behind a damaged batch, where its owner asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from provisioning import kafka
from provisioning.administration.services.messages import require_open_topic
from provisioning.cells import cluster_store, kafka_errors, metadata_errors
from provisioning.clusters.services.brokers import require_brokers
from provisioning.clusters.services.damage import reported_damage
from provisioning.errors import NotDamaged
from provisioning.models import Cluster

# The reason for a batch that brokers know to be damaged; the control plane does not decode it.
REPORTED = "reported"


@dataclass(frozen=True)
class SkippedBatch:
    """A damaged batch, and what is deleted with it.

    `reason`: see `kafka.Damaged`, or `REPORTED`. `log_start`: where the partition began before.
    `records_before`: how many offsets from there up to the batch are deleted, too; as many good
    records at most. `skipped`: whether that was done.
    """

    partition: int
    first_offset: int
    next_offset: int
    reason: str
    log_start: int
    records_before: int
    skipped: bool


def skip_damaged(  # noqa: PLR0913 (which batch, and whether)
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    partition: int,
    first_offset: int,
    confirm: bool,
    wake: bool,
) -> SkippedBatch:
    """Deletes a partition's records up to the end of the damaged batch that begins at an offset.

    Without `confirm` it only says what would be deleted. Raises `NotDamaged` where no damaged batch
    begins there (any more), `NotFound`, `KafkaRefused`, `ClusterAsleep`, `Unavailable`.
    """
    require_open_topic(cluster=cluster, topic=name)
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        (mark,) = kafka.delete_records(access, name, {partition: first_offset}, validate_only=True)
        log_start = mark["low_watermark"] - mark["deleted_offsets"]
        # The log may begin within the batch.
        head = kafka.next_head(access, name, partition, max(first_offset, log_start))
    if head is None or head["first_offset"] != first_offset:
        raise NotDamaged(_why_not(partition, first_offset, log_start, head))
    reason = _reason(cluster, access, name, head)
    if reason is None:
        detail = f"The batch at offset {first_offset} of partition {partition} can be decoded."
        raise NotDamaged(detail)
    batch = SkippedBatch(
        partition=partition,
        first_offset=first_offset,
        next_offset=head["next_offset"],
        reason=reason,
        log_start=log_start,
        records_before=max(first_offset - log_start, 0),
        skipped=confirm,
    )
    if confirm:
        with kafka_errors():
            kafka.delete_records(access, name, {partition: batch.next_offset})
        _audit(actor, cluster, name, batch)
    return batch


def _reason(cluster: Cluster, access: kafka.Access, name: str, head: kafka.BatchHead) -> str | None:
    """Why a batch counts as damaged; None where it does not."""
    partition, first_offset = head["partition"], head["first_offset"]
    with metadata_errors():
        topic_id = cluster_store(cluster.pk).topic(name).id
    reported = reported_damage(cluster=cluster, topic=name, topic_id=topic_id)
    if reported.get(partition) == first_offset:
        return REPORTED
    with kafka_errors():
        verdicts = kafka.judge(access, name, {partition: first_offset})
    return next((v["reason"] for v in verdicts if v["first_offset"] == first_offset), None)


def _why_not(
    partition: int, first_offset: int, log_start: int, head: kafka.BatchHead | None
) -> str:
    place = f"Partition {partition} has no batch that begins at offset {first_offset}"
    if head is None:
        return f"{place}: no record is left behind it."
    if log_start > first_offset:
        return f"{place}: its log begins at {log_start} by now."
    return f"{place}: the next one begins at {head['first_offset']}."


def _audit(actor: Actor, cluster: Cluster, name: str, batch: SkippedBatch) -> None:
    record_audit(
        actor=actor,
        action="topic.skip_damaged",
        target_type="topic",
        target_id=f"{cluster.pk}/{name}",
        detail={
            "partition": batch.partition,
            "first_offset": batch.first_offset,
            "next_offset": batch.next_offset,
            "log_start": batch.log_start,
        },
    )
