"""Topics that were deleted and can come back, and those that a restored backup did not know."""

from __future__ import annotations

from brokers.errors import NotFoundError, UnknownOutcomeError
from brokers.metadata import ClusterStore
from brokers.metadata_records import DeletedTopic, OrphanedTopic, Topic
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError, NameNotConfirmed, NotFound
from console.base.common.models import AuditEntry
from provisioning.administration.services.announcing import announced
from provisioning.administration.services.effect import wait_topic_known
from provisioning.administration.services.topic_room import require_topic_room
from provisioning.administration.services.topics import ShownTopic, show_topic, writable_store
from provisioning.administration.services.unrecorded import is_back_unrecorded
from provisioning.cells import cluster_store, metadata_errors
from provisioning.errors import (
    OutcomeUnknown,
)
from provisioning.models import Cluster

PURGED = "topic.purge"


def list_deleted_topics(*, cluster: Cluster) -> list[DeletedTopic]:
    """Topics that can be restored."""
    with metadata_errors():
        return cluster_store(cluster.pk).deleted_topics()


def get_deleted_topic(*, cluster: Cluster, topic: str) -> DeletedTopic:
    """One of them by its id. Raises `NotFound`."""
    for found in list_deleted_topics(cluster=cluster):
        if found.id == topic:
            return found
    raise NotFound


def undelete_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    topic: str,
    name: str | None = None,
    validate_only: bool = False,
) -> ShownTopic:
    """Brings a deleted topic back with all that it had, under another name where one is given.

    With `validate_only` it gives what would come back, and changes nothing. Raises `NotFound`,
    `NameTaken`, `LimitReached`, `ValidationFailed`, `OutcomeUnknown`.
    """
    locks.lock("deleted-topic", f"{cluster.pk}/{topic}")
    restored = _restored_before(cluster, topic, name)
    store = writable_store(cluster)
    if restored is None:
        found = get_deleted_topic(cluster=cluster, topic=topic)
        _require_room(cluster, store, found)
    with metadata_errors():
        if validate_only:
            would_be = restored or store.undelete_topic(topic, name, validate_only=True)
            return ShownTopic(would_be, ())
        try:
            restored = restored or store.undelete_topic(topic, name)
        except (UnknownOutcomeError, NotFoundError):
            restored = _restored_before(cluster, topic, name)
            if restored is None:
                raise
    _audit(actor, cluster, "topic.undelete", restored.name, topic)
    wait_topic_known(cluster=cluster, name=restored.name)
    return show_topic(cluster=cluster, store=store, topic=restored)


def _restored_before(cluster: Cluster, topic: str, name: str | None) -> Topic | None:
    """What a request brought back that died before anybody heard of it."""
    with metadata_errors():
        topics = cluster_store(cluster.pk).topics()
    for found in topics:
        if found.id == topic and name in {None, found.name}:
            return found if is_back_unrecorded(cluster=cluster, topic=found) else None
    return None


def purge_topic(*, actor: Actor, cluster: Cluster, topic: str, name: str | None) -> None:
    """Gives up a deleted topic before its time is over. Raises `NotFound`, `NameNotConfirmed`."""
    locks.lock("deleted-topic", f"{cluster.pk}/{topic}")
    found = get_deleted_topic(cluster=cluster, topic=topic)
    if name != found.name:
        detail = "Give the topic's name as `name` to confirm."
        raise NameNotConfirmed(detail, errors=[FieldError("?name", "name_not_confirmed", detail)])
    store = writable_store(cluster)
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=PURGED,
            target=("topic", f"{cluster.pk}/{found.name}"),
            detail={"id": topic},
        ),
        metadata_errors(),
    ):
        try:
            store.purge_topic(topic)
        except NotFoundError:
            pass  # it was there a moment ago: the call came twice
        except UnknownOutcomeError as error:
            if topic in {each.id for each in store.deleted_topics()}:
                raise OutcomeUnknown from error


def is_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced purge was done: the topic is not deleted, nor was it brought back."""
    store = cluster_store(cluster_id)
    there = {topic.id for topic in store.deleted_topics()} | {topic.id for topic in store.topics()}
    return entry.detail["id"] not in there


def list_orphaned_topics(*, cluster: Cluster) -> list[OrphanedTopic]:
    """Topics on storage that the metadata does not know."""
    with metadata_errors():
        return cluster_store(cluster.pk).orphaned_topics()


def get_orphaned_topic(*, cluster: Cluster, topic: str) -> OrphanedTopic:
    """One of them by its id. Raises `NotFound`."""
    for found in list_orphaned_topics(cluster=cluster):
        if found.id == topic:
            return found
    raise NotFound


def attach_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    topic: str,
    name: str | None = None,
    validate_only: bool = False,
) -> ShownTopic:
    """Makes an orphaned topic one of the cluster's again, with its id and records.

    With `validate_only` it gives what would come back, and changes nothing. Raises `NotFound`,
    `NameTaken`, `LimitReached`, `ValidationFailed`, `OutcomeUnknown`.
    """
    found = get_orphaned_topic(cluster=cluster, topic=topic)
    store = writable_store(cluster)
    _require_room(cluster, store, found)
    with metadata_errors():
        if validate_only:
            return ShownTopic(store.attach_topic(topic, name, validate_only=True), ())
        attached = store.attach_topic(topic, name)
    _audit(actor, cluster, "topic.attach", attached.name, topic)
    wait_topic_known(cluster=cluster, name=attached.name)
    return show_topic(cluster=cluster, store=store, topic=attached)


def _require_room(
    cluster: Cluster, store: ClusterStore, topic: DeletedTopic | OrphanedTopic
) -> None:
    """A topic that comes back takes the room of a new one. Raises `LimitReached`."""
    with metadata_errors():
        require_topic_room(cluster=cluster, store=store, topics=1, partitions=topic.partitions)


def _audit(actor: Actor, cluster: Cluster, action: str, name: str, topic: str) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="topic",
        target_id=f"{cluster.pk}/{name}",
        detail={"id": topic},
    )
