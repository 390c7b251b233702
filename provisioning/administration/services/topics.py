"""Topics, in the cluster's metadata. A change is the same whether the cluster sleeps or runs."""

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
from brokers.metadata_records import ClusterLimits, Topic, TopicConfig
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import change_of, record_audit
from console.base.common.errors import AppError, FieldError, ValidationFailed
from provisioning import kafka
from provisioning.administration.services.unrecorded import (
    MADE,
    has_grown_unrecorded,
    is_unrecorded,
)
from provisioning.cells import cluster_store, kafka_errors, metadata_errors, waiting_for_brokers
from provisioning.choices import Intent, Phase
from provisioning.clusters.services.brokers import require_brokers
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.clusters.services.observation import Condition, observe_cluster
from provisioning.errors import ClusterDeleted, at_item
from provisioning.models import Cluster

DIGEST_CHARS = 20
# How long a change waits until running brokers lead the partitions that it made.
LED_TIMEOUT_S = 5.0
# Nearly every topic has this condition, so it is built once.
LED = (Condition(type="Ready", status="true", reason="Led", message="Brokers serve it."),)


@dataclass(frozen=True)
class NewTopic:
    """A topic to be created. For a number that is None the cluster's default holds."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


class ShownTopic(NamedTuple):
    """A topic as the API shows it. `details` has every config, where they were asked for.

    It is a tuple, because a list of topics makes thousands of them.
    """

    topic: Topic
    conditions: tuple[Condition, ...]
    details: tuple[TopicConfig, ...] | None = None

    @property
    def created_at(self) -> datetime:
        """When the topic was made."""
        return datetime.fromtimestamp(self.topic.created_at_ms / 1000, UTC)

    @property
    def digest(self) -> str:
        """A digest of what clients can set, for the ETag.

        It has the id in it, so a topic that was deleted and made again has another digest.
        """
        content = [self.topic.id, self.topic.partitions, sorted(self.topic.configs.items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:DIGEST_CHARS]


def list_topics(*, cluster: Cluster, internal: bool) -> list[ShownTopic]:
    """All topics by name without configs, from one read of the metadata store."""
    with metadata_errors():
        topics = cluster_store(cluster.pk).topics()
    return [
        ShownTopic(topic, conditions_of(topic))
        for topic in topics
        if internal or not topic.internal
    ]


def with_configs(*, cluster: Cluster, shown: Sequence[ShownTopic]) -> list[ShownTopic]:
    """The same topics with every config, from one read of the metadata store."""
    with metadata_errors():
        defaults = cluster_store(cluster.pk).topic_configs() if shown else []
    return [one._replace(details=_overlaid(defaults, one.topic.configs)) for one in shown]


def get_topic(*, cluster: Cluster, name: str, full: bool = True) -> ShownTopic:
    """One topic, with every config where `full`. Raises `NotFound`."""
    store = cluster_store(cluster.pk)
    with metadata_errors():
        topic = store.topic(name)
        details = tuple(store.topic_configs(name)) if full else None
    return ShownTopic(topic, conditions_of(topic), details)


def create_topic(
    *, actor: Actor, cluster: Cluster, new_topic: NewTopic, validate_only: bool = False
) -> ShownTopic:
    """Creates a topic and waits until running brokers lead it.

    Where they do not within `LED_TIMEOUT_S`, its condition says so. Raises `NameTaken`,
    `ValidationFailed`, `LimitReached`, `OutcomeUnknown`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        if validate_only:
            return ShownTopic(_validate(store, new_topic, limits), ())
        hold_topic(cluster=cluster, name=new_topic.name)
        topic = _create_topic(cluster, store, new_topic, limits)
    _audit(actor, cluster, "topic.create", new_topic.name, {"partitions": topic.partitions})
    return show_topic(cluster=cluster, store=store, topic=topic)


def create_topics(
    *, actor: Actor, cluster: Cluster, new_topics: Sequence[NewTopic], validate_only: bool = False
) -> list[ShownTopic]:
    """Creates several topics; all are checked before the first is made.

    Raises as `create_topic` does; the pointers of errors begin with the topic's place in `items`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        partitions = sum(new_topic.partitions or 1 for new_topic in new_topics)
        store.check_topic_room(limits, topics=len(new_topics), partitions=partitions)
    if not validate_only:
        # Every request locks in the order of names, so that no two wait for each other.
        for name in sorted(new_topic.name for new_topic in new_topics):
            hold_topic(cluster=cluster, name=name)
    checked = [
        _create_item(place, cluster, store, new_topic, limits, validate_only=True)
        for place, new_topic in enumerate(new_topics)
    ]
    if validate_only:
        return [ShownTopic(topic, ()) for topic in checked]
    created = []
    for place, new_topic in enumerate(new_topics):
        topic = _create_item(place, cluster, store, new_topic, limits, validate_only=False)
        _audit(actor, cluster, "topic.create", new_topic.name, {"partitions": topic.partitions})
        created.append(topic)
    return [show_topic(cluster=cluster, store=store, topic=topic) for topic in created]


def _create_item(
    place: int,
    cluster: Cluster,
    store: ClusterStore,
    new_topic: NewTopic,
    limits: ClusterLimits,
    *,
    validate_only: bool,
) -> Topic:
    """Creates or validates one topic of several; errors point at its place in `items`."""
    try:
        with metadata_errors():
            if validate_only:
                return _validate_item(cluster, store, new_topic, limits)
            return _create_topic(cluster, store, new_topic, limits)
    except AppError as error:
        raise at_item(error, place) from error


def _validate(store: ClusterStore, new_topic: NewTopic, limits: ClusterLimits) -> Topic:
    return store.validate_topic(
        new_topic.name,
        partitions=new_topic.partitions,
        replication_factor=new_topic.replication_factor,
        configs=new_topic.configs,
        limits=limits,
    )


def _validate_item(
    cluster: Cluster, store: ClusterStore, new_topic: NewTopic, limits: ClusterLimits
) -> Topic:
    """Validates a new topic. One that a request made before it died does not count as existing."""
    try:
        return _validate(store, new_topic, limits)
    except ExistsError:
        existing = store.topic(new_topic.name)
        if _is_leftover(cluster, store, new_topic, existing):
            return existing
        raise


def _create_topic(
    cluster: Cluster, store: ClusterStore, new_topic: NewTopic, limits: ClusterLimits
) -> Topic:
    """Creates a topic, or returns the one that this request's lost call or a dead request made.

    Raises as `ClusterStore.create_topic` does.
    """
    name = new_topic.name
    try:
        return _create_once(store, new_topic, limits)
    except UnknownOutcomeError:
        try:
            existing = store.topic(name)
        except NotFoundError:
            return _create_once(store, new_topic, limits)
        if _is_same(new_topic, existing):
            return existing
        message = f"Topic '{name}' already exists."
        raise ExistsError(message) from None
    except ExistsError:
        existing = store.topic(name)
        if _is_leftover(cluster, store, new_topic, existing):
            return existing
        raise


def _create_once(store: ClusterStore, new_topic: NewTopic, limits: ClusterLimits) -> Topic:
    return store.create_topic(
        new_topic.name,
        partitions=new_topic.partitions,
        replication_factor=new_topic.replication_factor,
        configs=new_topic.configs,
        limits=limits,
    )


def _is_leftover(
    cluster: Cluster, store: ClusterStore, new_topic: NewTopic, existing: Topic
) -> bool:
    """Whether the topic is the same as the new one, and a request made it that died after that."""
    return _is_same(new_topic, existing) and is_unrecorded(
        cluster=cluster, store=store, name=existing.name, actions=MADE, at_ms=existing.created_at_ms
    )


def _is_same(new_topic: NewTopic, existing: Topic) -> bool:
    same = dict(existing.configs) == dict(new_topic.configs)
    same &= new_topic.replication_factor in {None, existing.replication_factor}
    return same and new_topic.partitions in {None, existing.partitions}


def update_topic(
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    configs: Mapping[str, str | None],
    validate_only: bool = False,
) -> ShownTopic:
    """Sets the given configs of a topic; a None goes back to the default, all others stay.

    Raises `NotFound`, `ValidationFailed`.
    """
    store = writable_store(cluster)
    with metadata_errors():
        before = {config.name: config.value for config in store.topic_configs(name)}
        topic = store.alter_topic_configs(name, configs, validate_only=validate_only)
        details = tuple(store.topic_configs(name))
    if not validate_only:
        # Of a config that goes back to its default the value is the default.
        now_set = {config.name: config.value for config in details}
        changed = {config: change_of(before.get(config), now_set.get(config)) for config in configs}
        _audit(actor, cluster, "topic.update", name, {"configs": changed})
    return ShownTopic(topic, conditions_of(topic), details)


def add_partitions(
    *, actor: Actor, cluster: Cluster, name: str, count: int, validate_only: bool = False
) -> ShownTopic:
    """Raises a topic's number of partitions to `count`.

    Raises `ValidationFailed` where it has as many already, `NotFound`, `LimitReached`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        before = store.topic(name)
        grown = has_grown_unrecorded(cluster=cluster, store=store, topic=before, count=count)
        if count <= before.partitions and not grown:
            detail = f"The topic has {before.partitions} partitions: they only go up."
            raise ValidationFailed(errors=[FieldError("/count", "invalid", detail)])
        if validate_only:
            adding = count - before.partitions
            store.check_topic_room(limits, topics=0, partitions=adding)
            return ShownTopic(replace(before, partitions=count), ())
        topic = before if grown else _grow_topic(cluster, store, name, count, limits)
    # How many there were when a request began that died meanwhile is not known.
    changed = change_of(None if grown else before.partitions, count)
    _audit(actor, cluster, "topic.add_partitions", name, {"partitions": changed})
    return show_topic(cluster=cluster, store=store, topic=topic)


def _grow_topic(
    cluster: Cluster, store: ClusterStore, name: str, count: int, limits: ClusterLimits
) -> Topic:
    """Adds partitions. Reads the topic after a lost answer, and where the call arrived twice."""
    try:
        return store.create_partitions(name, count, limits=limits)
    except UnknownOutcomeError:
        topic = store.topic(name)
        if topic.partitions == count:
            return topic
        return store.create_partitions(name, count, limits=limits)
    except InvalidError:
        topic = store.topic(name)
        if has_grown_unrecorded(cluster=cluster, store=store, topic=topic, count=count):
            return topic
        raise


def hold_topic(*, cluster: Cluster, name: str) -> None:
    """Makes other requests that change the topic wait until this transaction ends."""
    locks.lock("topic", f"{cluster.pk}/{name}")


def delete_topic(*, actor: Actor, cluster: Cluster, name: str) -> None:
    """Deletes a topic; it can be restored for a while (`deleted_topics`). Raises `NotFound`."""
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        try:
            store.delete_topic(name, limits=limits)
        except UnknownOutcomeError:
            _delete_if_there(store, name)
        except NotFoundError:
            if not _is_deleted_unrecorded(cluster, store, name):
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
    """Deletes the records before an offset of each partition (`before`); −1 is the partition's end.

    Returns where the partitions begin afterwards. With `validate_only` it returns where they would
    begin, and changes nothing. Raises `NotFound`, `KafkaRefused`, `ClusterAsleep`, `Unavailable`.
    """
    access = require_brokers(cluster=cluster, wake=wake)
    with kafka_errors():
        marks = kafka.delete_records(access, name, before, validate_only=validate_only)
    if validate_only:
        return marks
    detail = {"partitions": {str(mark["partition"]): mark["low_watermark"] for mark in marks}}
    _audit(actor, cluster, "topic.delete_records", name, detail)
    return marks


def _delete_if_there(store: ClusterStore, name: str) -> None:
    try:
        store.delete_topic(name)
    except NotFoundError:
        return


def _is_deleted_unrecorded(cluster: Cluster, store: ClusterStore, name: str) -> bool:
    return any(
        is_unrecorded(
            cluster=cluster,
            store=store,
            name=name,
            actions=["topic.delete"],
            at_ms=deleted.deleted_at_ms,
        )
        for deleted in store.deleted_topics()[:1]
        if deleted.name == name
    )


def writable_store(cluster: Cluster) -> ClusterStore:
    """The cluster's metadata, for a change. Raises `ClusterDeleted`, `Unavailable`.

    Where no worker has reconciled the cluster yet, its metadata is created here.
    """
    if cluster.intent != Intent.ACTIVE:
        raise ClusterDeleted
    store = cluster_store(cluster.pk)
    if not cluster.reconciled_generation:
        with metadata_errors():
            store.create(scale=cluster.scale)
    return store


def conditions_of(topic: Topic) -> tuple[Condition, ...]:
    """The condition `Ready` of a topic: whether brokers serve all of its partitions."""
    if topic.partitions_led >= topic.partitions:
        return LED
    if topic.partitions_led == 0:
        message = "It is served as soon as the cluster runs."
        return (Condition(type="Ready", status="false", reason="NotLed", message=message),)
    message = f"{topic.partitions_led} of {topic.partitions} partitions are served."
    return (Condition(type="Ready", status="false", reason="PartlyLed", message=message),)


def show_topic(*, cluster: Cluster, store: ClusterStore, topic: Topic) -> ShownTopic:
    """A topic that was just changed. Where brokers run, it first waits until they lead all of it.

    Where they do not within `LED_TIMEOUT_S`, the topic's condition says so.
    """
    if observe_cluster(cluster).phase is Phase.RUNNING:
        try:
            with waiting_for_brokers():
                store.wait_led(topic.name, LED_TIMEOUT_S)
            topic = store.topic(topic.name)
        except (UnavailableError, NotFoundError):
            topic = replace(topic, partitions_led=0)
    return ShownTopic(topic, conditions_of(topic))


def _overlaid(defaults: list[TopicConfig], configs: Mapping[str, str]) -> tuple[TopicConfig, ...]:
    """Every config of a topic: `defaults` with the values that the topic sets itself."""
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
