"""Quotas of a cluster's clients, in its metadata, where Kafka's tools see the same ones."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace

from brokers.metadata import ClusterStore
from brokers.metadata_records import ClusterLimits, Quota, QuotaEntity
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import change_of, record_audit
from console.base.common.errors import AppError, FieldError, NotFound, ValidationFailed
from console.base.common.ids import RANDOM_CHARS
from console.base.common.models import AuditEntry
from console.base.limits.services import check_room
from provisioning.administration.services.announcing import announced, record_earlier_deletions
from provisioning.administration.services.repeating import repeat_unknown
from provisioning.administration.services.topics import writable_store
from provisioning.cells import cluster_store, metadata_errors
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.models import Cluster

REMOVED = "quota.remove"
# The REST names of values → Kafka's names; `max_connections` exists in this service only.
KAFKA_NAMES = {
    "produce_bytes_per_second": "producer_byte_rate",
    "fetch_bytes_per_second": "consumer_byte_rate",
    "request_percentage": "request_percentage",
    "connections": "max_connections",
    "connections_per_second": "connection_creation_rate",
}
# The metadata store's names of fields → those of the REST body.
POINTERS = {kafka: name for name, kafka in KAFKA_NAMES.items()} | {
    "client-id": "client_id",
    "entity": "user",
}


@dataclass(frozen=True)
class ShownQuota:
    """The quotas of an entity, as the API shows them. `values` has Kafka's names as keys."""

    entity: QuotaEntity
    values: Mapping[str, float]

    @property
    def id(self) -> str:
        """`qta_` and 100 bits of the SHA-256 of the entity: the same for the same entity."""
        digest = hashlib.sha256(json.dumps(astuple(self.entity)).encode()).digest()
        return f"qta_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"

    def value(self, name: str) -> float | None:
        """One value by its REST name; None where it is not set."""
        return self.values.get(KAFKA_NAMES[name])


def list_quotas(*, cluster: Cluster) -> list[ShownQuota]:
    """All quotas of a cluster, from one read of the metadata store."""
    with metadata_errors():
        return [_shown(quota) for quota in cluster_store(cluster.pk).quotas()]


def get_quota(*, cluster: Cluster, quota: str) -> ShownQuota:
    """The quotas with the id `quota`. Raises `NotFound`."""
    for shown in list_quotas(cluster=cluster):
        if shown.id == quota:
            return shown
    raise NotFound


def set_quota(
    *,
    actor: Actor,
    cluster: Cluster,
    entity: QuotaEntity,
    values: Mapping[str, float],
    validate_only: bool = False,
) -> ShownQuota:
    """Gives an entity exactly these values (REST name → value); running brokers apply them too.

    Raises `ValidationFailed`, `LimitReached`, `OutcomeUnknown`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    kafka_values = {KAFKA_NAMES[name]: value for name, value in values.items()}
    if validate_only:
        _check_room(store, limits, entity)
    else:
        # A removal that is under way ends first, or finds the quotas that are set here.
        locks.lock("quotas", cluster.pk)
        try:
            with metadata_errors():
                record_earlier_deletions(cluster=cluster, action=REMOVED)
                before = _values_of(store, entity)
                repeat_unknown(lambda: store.set_quota(entity, kafka_values, limits=limits))
        except AppError as error:
            raise _with_rest_pointers(error) from error
        record_audit(
            actor=actor,
            action="quota.set",
            target_type="cluster",
            target_id=cluster.pk,
            detail={"entity": asdict(entity), "values": _changes(before or {}, kafka_values)},
        )
    return ShownQuota(entity, kafka_values)


def _values_of(store: ClusterStore, entity: QuotaEntity) -> Mapping[str, float] | None:
    """The values of an entity by Kafka's names; None where it has no quotas."""
    return next((quota.values for quota in store.quotas() if quota.entity == entity), None)


def _changes(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, object]:
    """How values (by Kafka's names) change, by their REST names, for the audit log.

    One that is set to what it is stays in it: a request that died may have set it.
    """
    return {
        name: change_of(before.get(kafka_name), after.get(kafka_name))
        for name, kafka_name in KAFKA_NAMES.items()
        if kafka_name in {*before, *after}
    }


def _check_room(store: ClusterStore, limits: ClusterLimits, entity: QuotaEntity) -> None:
    with metadata_errors():
        entities = {quota.entity for quota in store.quotas()}
    if entity not in entities and limits.quotas is not None:
        check_room("quotas", limit=limits.quotas, used=len(entities), adding=1)


def remove_quota(*, actor: Actor, cluster: Cluster, entity: QuotaEntity) -> None:
    """Removes all quotas of an entity. Raises `NotFound`, `OutcomeUnknown`."""
    store = writable_store(cluster)
    locks.lock("quotas", cluster.pk)
    with metadata_errors():
        before = _values_of(store, entity)
        if before is None:
            raise NotFound
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=REMOVED,
            target=("cluster", cluster.pk),
            detail={"entity": asdict(entity), "values": _changes(before, {})},
        ),
        metadata_errors(),
    ):
        repeat_unknown(lambda: store.remove_quota(entity))


def is_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced removal was made."""
    entities = {quota.entity for quota in cluster_store(cluster_id).quotas()}
    return QuotaEntity(**entry.detail["entity"]) not in entities


def copy_quotas(*, store: ClusterStore, of: str, to: str) -> None:
    """Gives the user `to` the quotas of the user `of`. Raises `MetadataError`."""
    for quota in store.quotas():
        if quota.entity.user == of:
            store.set_quota(replace(quota.entity, user=to), quota.values)


def remove_quotas_of(*, store: ClusterStore, user: str) -> None:
    """Removes the quotas of a user that was removed. Raises `MetadataError`."""
    for quota in store.quotas():
        if quota.entity.user == user:
            store.remove_quota(quota.entity)


def _shown(quota: Quota) -> ShownQuota:
    return ShownQuota(quota.entity, quota.values)


def _with_rest_pointers(error: AppError) -> AppError:
    """Rewrites the pointers of an error, in which the metadata store names fields as Kafka does."""
    if isinstance(error, ValidationFailed):
        error.errors = tuple(
            FieldError(f"/{POINTERS.get(name, name)}", field_error.code, field_error.detail)
            for field_error in error.errors
            for name in [field_error.pointer.removeprefix("/")]
        )
    return error
