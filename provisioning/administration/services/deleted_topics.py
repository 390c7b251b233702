"""Deleted topics, which can be restored, and orphaned topics, which can be attached."""

from __future__ import annotations

from brokers.errors import NotFoundError, UnknownOutcomeError
from brokers.metadata_records import DeletedTopic, OrphanedTopic, Topic
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError, NameNotConfirmed, NotFound
from console.base.common.models import AuditEntry
from provisioning.administration.services.announcing import announced
from provisioning.administration.services.effect import wait_topic_known
from provisioning.administration.services.topics import ShownTopic, show_topic, writable_store
from provisioning.administration.services.unrecorded import is_back_unrecorded
from provisioning.cells import cluster_store, metadata_errors
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.errors import (
    OutcomeUnknown,
)
from provisioning.models import Cluster

PURGED = "topic.purge"


def list_deleted_topics(*, cluster: Cluster) -> list[DeletedTopic]:
    """The deleted topics of a cluster that can still be restored."""
    with metadata_errors():
        return cluster_store(cluster.pk).deleted_topics()


def get_deleted_topic(*, cluster: Cluster, topic: str) -> DeletedTopic:
    """The deleted topic with the id `topic`. Raises `NotFound`."""
    for deleted in list_deleted_topics(cluster=cluster):
        if deleted.id == topic:
            return deleted
    raise NotFound


def undelete_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    topic: str,
    name: str | None = None,
    validate_only: bool = False,
) -> ShownTopic:
    """Restores a deleted topic with its records, configs and id, under `name` where one is given.

    With `validate_only` it returns the topic as it would be, and changes nothing. Raises
    `NotFound`, `NameTaken`, `LimitReached`, `ValidationFailed`, `OutcomeUnknown`.
    """
    locks.lock("deleted-topic", f"{cluster.pk}/{topic}")
    restored = _restored_before(cluster, topic, name)
    # It counts as a new topic does.
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        if validate_only:
            would_be = restored or store.undelete_topic(
                topic, name, limits=limits, validate_only=True
            )
            return ShownTopic(would_be, ())
        try:
            restored = restored or store.undelete_topic(topic, name, limits=limits)
        except (UnknownOutcomeError, NotFoundError):
            restored = _restored_before(cluster, topic, name)
            if restored is None:
                raise
    _audit(actor, cluster, "topic.undelete", restored.name, topic)
    wait_topic_known(cluster=cluster, name=restored.name)
    return show_topic(cluster=cluster, store=store, topic=restored)


def _restored_before(cluster: Cluster, topic: str, name: str | None) -> Topic | None:
    """The topic, where a request restored it and died before its audit entry; otherwise None."""
    with metadata_errors():
        topics = cluster_store(cluster.pk).topics()
    for candidate in topics:
        if candidate.id == topic and name in {None, candidate.name}:
            return candidate if is_back_unrecorded(cluster=cluster, topic=candidate) else None
    return None


def purge_topic(*, actor: Actor, cluster: Cluster, topic: str, name: str | None) -> None:
    """Removes a deleted topic's records for good, before its time to be restored is over.

    `name` must be the topic's name. Raises `NotFound`, `NameNotConfirmed`, `OutcomeUnknown`.
    """
    locks.lock("deleted-topic", f"{cluster.pk}/{topic}")
    deleted = get_deleted_topic(cluster=cluster, topic=topic)
    if name != deleted.name:
        detail = "Give the topic's name as `name` to confirm."
        raise NameNotConfirmed(detail, errors=[FieldError("?name", "name_not_confirmed", detail)])
    store = writable_store(cluster)
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=PURGED,
            target=("topic", f"{cluster.pk}/{deleted.name}"),
            detail={"id": topic},
        ),
        metadata_errors(),
    ):
        try:
            store.purge_topic(topic)
        except NotFoundError:
            pass  # it existed a moment ago: the call reached the store twice
        except UnknownOutcomeError as error:
            if topic in {remaining.id for remaining in store.deleted_topics()}:
                raise OutcomeUnknown from error


def is_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced purge was made: the topic is neither deleted nor restored."""
    store = cluster_store(cluster_id)
    known = {topic.id for topic in store.deleted_topics()} | {topic.id for topic in store.topics()}
    return entry.detail["id"] not in known


def list_orphaned_topics(*, cluster: Cluster) -> list[OrphanedTopic]:
    """Lists the topics, by name, that a restored metadata store did not know and storage had.

    The first broker that starts after the restore finds them, and writes them to the metadata
    store. This reads them from there; it does not look at storage. Raises `Unavailable` where the
    metadata store does not answer, and `PlatformError`.
    """
    with metadata_errors():
        return cluster_store(cluster.pk).orphaned_topics()


def get_orphaned_topic(*, cluster: Cluster, topic: str) -> OrphanedTopic:
    """The orphaned topic with the id `topic`. Raises `NotFound`."""
    for orphaned in list_orphaned_topics(cluster=cluster):
        if orphaned.id == topic:
            return orphaned
    raise NotFound


def attach_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    topic: str,
    name: str | None = None,
    validate_only: bool = False,
) -> ShownTopic:
    """Adds an orphaned topic to the cluster's metadata again, with its id and records.

    With `validate_only` it returns the topic as it would be, and changes nothing. Raises
    `NotFound`, `NameTaken`, `LimitReached`, `ValidationFailed`, `OutcomeUnknown`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        if validate_only:
            would_be = store.attach_topic(topic, name, limits=limits, validate_only=True)
            return ShownTopic(would_be, ())
        attached = store.attach_topic(topic, name, limits=limits)
    _audit(actor, cluster, "topic.attach", attached.name, topic)
    wait_topic_known(cluster=cluster, name=attached.name)
    return show_topic(cluster=cluster, store=store, topic=attached)


def _audit(actor: Actor, cluster: Cluster, action: str, name: str, topic: str) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="topic",
        target_id=f"{cluster.pk}/{name}",
        detail={"id": topic},
    )
