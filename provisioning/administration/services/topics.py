"""Topics, in the cluster's metadata: the same whether it sleeps or runs, and never waking it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from brokers.errors import (
    ExistsError,
    InvalidError,
    NotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from brokers.metadata import ClusterStore
from brokers.metadata_records import Topic, TopicConfig
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import AppError, FieldError, ValidationFailed
from provisioning import kafka
from provisioning.administration.services.topic_room import require_topic_room
from provisioning.administration.services.unrecorded import (
    MADE,
    has_grown_unrecorded,
    is_unrecorded,
)
from provisioning.cells import cluster_store, kafka_errors, metadata_errors
from provisioning.choices import Intent, Phase
from provisioning.clusters.services.brokers import require_brokers
from provisioning.clusters.services.observation import Condition, observe_cluster
from provisioning.errors import ClusterDeleted, at_item
from provisioning.models import Cluster

DIGEST_CHARS = 20
# How long a change waits for running brokers to lead what it made.
LED_TIMEOUT_S = 5.0
# Of nearly every topic, so it is made once.
LED = (Condition(type="Ready", status="true", reason="Led", message="Brokers serve it."),)


@dataclass(frozen=True)
class NewTopic:
    """What a new topic shall be. Numbers that are None are the cluster's default."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


class ShownTopic(NamedTuple):
    """A topic as the API shows it. `details`: every config, where they were asked for.

    A tuple, because a list makes thousands of them.
    """

    topic: Topic
    conditions: tuple[Condition, ...]
    details: tuple[TopicConfig, ...] | None = None

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.topic.created_at_ms / 1000, UTC)

    @property
    def digest(self) -> str:
        """Of all that can be asked for; a topic that was deleted and made again has another."""
        wanted = [self.topic.id, self.topic.partitions, sorted(self.topic.configs.items())]
        return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:DIGEST_CHARS]


def list_topics(*, cluster: Cluster, internal: bool, full: bool) -> list[ShownTopic]:
    """All topics by name, from one read of the metadata store; with configs, from two."""
    store = cluster_store(cluster.pk)
    with metadata_errors():
        topics = store.topics()
        defaults = store.topic_configs() if full and topics else []
    return [
        ShownTopic(
            topic, conditions_of(topic), _overlaid(defaults, topic.configs) if full else None
        )
        for topic in topics
        if internal or not topic.internal
    ]


def get_topic(*, cluster: Cluster, name: str, full: bool = True) -> ShownTopic:
    """One topic. Raises `NotFound`."""
    store = cluster_store(cluster.pk)
    with metadata_errors():
        topic = store.topic(name)
        details = tuple(store.topic_configs(name)) if full else None
    return ShownTopic(topic, conditions_of(topic), details)


def create_topic(
    *, actor: Actor, cluster: Cluster, wanted: NewTopic, validate_only: bool = False
) -> ShownTopic:
    """Makes a topic. On a running cluster brokers lead it when this returns, or a condition says.

    Raises `NameTaken`, `ValidationFailed`, `LimitReached`, `OutcomeUnknown`.
    """
    store = writable_store(cluster)
    with metadata_errors():
        partitions = wanted.partitions or 1
        require_topic_room(cluster=cluster, store=store, topics=1, partitions=partitions)
        if validate_only:
            return ShownTopic(_validate(store, wanted), ())
        hold_topic(cluster=cluster, name=wanted.name)
        topic = _create(cluster, store, wanted)
    _audit(actor, cluster, "topic.create", wanted.name, {"partitions": topic.partitions})
    return show_topic(cluster=cluster, store=store, topic=topic)


def create_topics(
    *, actor: Actor, cluster: Cluster, wanted: Sequence[NewTopic], validate_only: bool = False
) -> list[ShownTopic]:
    """Makes several topics; all are checked before the first is made.

    Raises as `create_topic` does; pointers begin at the topic's place in `items`.
    """
    store = writable_store(cluster)
    with metadata_errors():
        partitions = sum(each.partitions or 1 for each in wanted)
        require_topic_room(cluster=cluster, store=store, topics=len(wanted), partitions=partitions)
    if not validate_only:
        # In one order for all, so that no two wait for each other.
        for each in sorted(wanted, key=lambda each: each.name):
            hold_topic(cluster=cluster, name=each.name)
    checked = [
        _at_place(place, cluster, store, each, validate_only=True)
        for place, each in enumerate(wanted)
    ]
    if validate_only:
        return [ShownTopic(topic, ()) for topic in checked]
    made = []
    for place, each in enumerate(wanted):
        topic = _at_place(place, cluster, store, each, validate_only=False)
        _audit(actor, cluster, "topic.create", each.name, {"partitions": topic.partitions})
        made.append(topic)
    return [show_topic(cluster=cluster, store=store, topic=topic) for topic in made]


def _at_place(
    place: int, cluster: Cluster, store: ClusterStore, wanted: NewTopic, *, validate_only: bool
) -> Topic:
    try:
        with metadata_errors():
            if validate_only:
                return _validate_new(cluster, store, wanted)
            return _create(cluster, store, wanted)
    except AppError as error:
        raise at_item(error, place) from error


def _validate(store: ClusterStore, wanted: NewTopic) -> Topic:
    return store.validate_topic(
        wanted.name,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        configs=wanted.configs,
    )


def _validate_new(cluster: Cluster, store: ClusterStore, wanted: NewTopic) -> Topic:
    """As before it is made; one that a request left that died counts as not made yet."""
    try:
        return _validate(store, wanted)
    except ExistsError:
        found = store.topic(wanted.name)
        if _is_left_over(cluster, store, wanted, found):
            return found
        raise


def _create(cluster: Cluster, store: ClusterStore, wanted: NewTopic) -> Topic:
    """After a lost answer the topic is looked for: one that is as wanted is the one wanted."""
    name = wanted.name
    try:
        return _create_once(store, wanted)
    except UnknownOutcomeError:
        try:
            found = store.topic(name)
        except NotFoundError:
            return _create_once(store, wanted)
        if _is_as_wanted(wanted, found):
            return found
        message = f"Topic '{name}' already exists."
        raise ExistsError(message) from None
    except ExistsError:
        found = store.topic(name)
        if _is_left_over(cluster, store, wanted, found):
            return found
        raise


def _create_once(store: ClusterStore, wanted: NewTopic) -> Topic:
    return store.create_topic(
        wanted.name,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        configs=wanted.configs,
    )


def _is_left_over(cluster: Cluster, store: ClusterStore, wanted: NewTopic, found: Topic) -> bool:
    """Whether it is as wanted, and made by a request of ours that nobody has heard the end of."""
    return _is_as_wanted(wanted, found) and is_unrecorded(
        cluster=cluster, store=store, name=found.name, actions=MADE, at_ms=found.created_at_ms
    )


def _is_as_wanted(wanted: NewTopic, found: Topic) -> bool:
    same = dict(found.configs) == dict(wanted.configs)
    same &= wanted.replication_factor in {None, found.replication_factor}
    return same and wanted.partitions in {None, found.partitions}


def update_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    configs: Mapping[str, str | None],
    validate_only: bool = False,
) -> ShownTopic:
    """Sets configs; None goes back to the default, others stay. Raises `ValidationFailed`."""
    store = writable_store(cluster)
    with metadata_errors():
        topic = store.alter_topic_configs(name, configs, validate_only=validate_only)
        details = tuple(store.topic_configs(name))
    if not validate_only:
        _audit(actor, cluster, "topic.update", name, {"configs": dict(configs)})
    return ShownTopic(topic, conditions_of(topic), details)


def add_partitions(
    *, actor: Actor, cluster: Cluster, name: str, count: int, validate_only: bool = False
) -> ShownTopic:
    """Raises a topic's number of partitions to `count`. Raises `ValidationFailed` below it."""
    store = writable_store(cluster)
    with metadata_errors():
        before = store.topic(name)
        grown = has_grown_unrecorded(cluster=cluster, store=store, topic=before, count=count)
        if count <= before.partitions and not grown:
            detail = f"The topic has {before.partitions} partitions: they only go up."
            raise ValidationFailed(errors=[FieldError("/count", "invalid", detail)])
        adding = count - before.partitions
        require_topic_room(cluster=cluster, store=store, topics=0, partitions=adding)
        if validate_only:
            return ShownTopic(replace(before, partitions=count), ())
        topic = before if grown else _grow(cluster, store, name, count)
    _audit(actor, cluster, "topic.add_partitions", name, {"partitions": count})
    return show_topic(cluster=cluster, store=store, topic=topic)


def _grow(cluster: Cluster, store: ClusterStore, name: str, count: int) -> Topic:
    """After a lost answer, or one that came twice, the topic is looked at."""
    try:
        return store.create_partitions(name, count)
    except UnknownOutcomeError:
        found = store.topic(name)
        return found if found.partitions == count else store.create_partitions(name, count)
    except InvalidError:
        found = store.topic(name)
        if has_grown_unrecorded(cluster=cluster, store=store, topic=found, count=count):
            return found
        raise


def hold_topic(*, cluster: Cluster, name: str) -> None:
    """Makes other requests that change the topic wait until this transaction ends."""
    locks.lock("topic", f"{cluster.pk}/{name}")


def delete_topic(*, actor: Actor, cluster: Cluster, name: str) -> None:
    """Removes a topic; it can be restored for a while (`deleted_topics.py`). Raises `NotFound`."""
    store = writable_store(cluster)
    with metadata_errors():
        try:
            store.delete_topic(name)
        except UnknownOutcomeError:
            _delete_if_there(store, name)
        except NotFoundError:
            if not _is_gone_unrecorded(cluster, store, name):
                raise
    _audit(actor, cluster, "topic.delete", name, {})


def delete_records(
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    before: Mapping[int, int],
    wake: bool,
    validate_only: bool = False,
) -> list[kafka.LowWatermark]:
    """Deletes what lies before an offset of each partition; −1 is its end.

    With `validate_only` it tells what would go, and changes nothing. Raises `NotFound`,
    `KafkaRefused`, `ClusterAsleep`, `Unavailable`.
    """
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        left = kafka.delete_records(access, name, before, validate_only=validate_only)
    if validate_only:
        return left
    detail = {"partitions": {str(each["partition"]): each["low_watermark"] for each in left}}
    _audit(actor, cluster, "topic.delete_records", name, detail)
    return left


def _delete_if_there(store: ClusterStore, name: str) -> None:
    try:
        store.delete_topic(name)
    except NotFoundError:
        return


def _is_gone_unrecorded(cluster: Cluster, store: ClusterStore, name: str) -> bool:
    return any(
        is_unrecorded(
            cluster=cluster,
            store=store,
            name=name,
            actions=["topic.delete"],
            at_ms=gone.deleted_at_ms,
        )
        for gone in store.deleted_topics()[:1]
        if gone.name == name
    )


def writable_store(cluster: Cluster) -> ClusterStore:
    """The cluster's metadata, for a change. A cluster that no worker has seen yet is begun here.

    Raises `ClusterDeleted`.
    """
    if cluster.intent != Intent.ACTIVE:
        raise ClusterDeleted
    store = cluster_store(cluster.pk)
    if not cluster.reconciled_generation:
        with metadata_errors():
            store.create(scale=cluster.scale)
    return store


def conditions_of(topic: Topic) -> tuple[Condition, ...]:
    """Whether brokers serve all of it, or when they will."""
    if topic.partitions_led >= topic.partitions:
        return LED
    if topic.partitions_led == 0:
        message = "It is served as soon as the cluster runs."
        return (Condition(type="Ready", status="false", reason="NotLed", message=message),)
    message = f"{topic.partitions_led} of {topic.partitions} partitions are served."
    return (Condition(type="Ready", status="false", reason="PartlyLed", message=message),)


def show_topic(*, cluster: Cluster, store: ClusterStore, topic: Topic) -> ShownTopic:
    """Waits where brokers run. What is not known by then, the condition says."""
    if observe_cluster(cluster).phase is Phase.RUNNING:
        try:
            store.wait_led(topic.name, LED_TIMEOUT_S)
            topic = store.topic(topic.name)
        except (UnavailableError, NotFoundError):
            topic = replace(topic, partitions_led=0)
    return ShownTopic(topic, conditions_of(topic))


def _overlaid(defaults: list[TopicConfig], configs: Mapping[str, str]) -> tuple[TopicConfig, ...]:
    """Every config of a topic, from those of one that sets nothing and what it sets."""
    return tuple(
        replace(entry, value=configs[entry.name], source="DYNAMIC_TOPIC_CONFIG", is_default=False)
        if entry.name in configs
        else entry
        for entry in defaults
    )


def _audit(
    actor: Actor, cluster: Cluster, action: str, name: str, detail: Mapping[str, object]
) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="topic",
        target_id=f"{cluster.pk}/{name}",
        detail=detail,
    )
