"""Entries of a cluster's access control list, in its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from brokers.metadata import ClusterStore
from brokers.metadata_records import Acl, ClusterLimits
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError, NotFound, ValidationFailed
from console.base.common.models import AuditEntry
from console.base.limits.services import check_room
from provisioning.administration.acl_ids import acl_id
from provisioning.administration.acl_templates import (
    TEMPLATES,
    TemplateValues,
    acls_of_template,
    missing_parameters,
)
from provisioning.administration.services.announcing import announced, record_earlier_deletions
from provisioning.administration.services.effect import Effect, wait_effect
from provisioning.administration.services.repeating import repeat_unknown
from provisioning.administration.services.topics import writable_store
from provisioning.cells import cluster_store, metadata_errors
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.models import Cluster

DELETED = "acl.delete"


def list_acls(*, cluster: Cluster, matching: Mapping[str, str]) -> list[Acl]:
    """The entries, sorted, that have the values of `matching` (field → value). `{}` matches all."""
    with metadata_errors():
        entries = cluster_store(cluster.pk).list_acls()
    return sorted(entry for entry in entries if _matches(entry, matching))


def get_acl(*, cluster: Cluster, acl: str) -> Acl:
    """The entry with the id `acl`. Raises `NotFound`."""
    for entry in list_acls(cluster=cluster, matching={}):
        if acl_id(entry) == acl:
            return entry
    raise NotFound


def template_acls(*, template: str, values: TemplateValues) -> list[Acl]:
    """The entries of a template. Raises `ValidationFailed` where a parameter it needs is None."""
    chosen = TEMPLATES[template]
    missing = missing_parameters(template=chosen, values=values)
    if missing:
        raise ValidationFailed(
            errors=[
                FieldError(f"/{name}", "required", f"The template {template} needs it.")
                for name in missing
            ]
        )
    return acls_of_template(template=chosen, values=values)


def create_acls(
    *, actor: Actor, cluster: Cluster, acls: Sequence[Acl], validate_only: bool = False
) -> Effect:
    """Adds all entries or none; entries that exist already stay. Raises `LimitReached`.

    When this returns, running brokers apply the entries, or the effect's condition is `unknown`.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    with metadata_errors():
        if validate_only:
            require_room(limits=limits, existing=set(store.list_acls()), new=set(acls))
            return Effect(())
        # A deletion that is under way ends first, or finds the entries that are added here.
        locks.lock("acls", cluster.pk)
        record_earlier_deletions(cluster=cluster, action=DELETED)
        repeat_unknown(lambda: store.add_acls(acls, limits=limits))
    record_audit(
        actor=actor,
        action="acl.create",
        target_type="cluster",
        target_id=cluster.pk,
        detail={"acls": [asdict(entry) for entry in acls]},
    )
    return wait_effect(cluster=cluster, acls=acls)


def delete_acls(*, actor: Actor, cluster: Cluster, matching: Mapping[str, str]) -> list[Acl]:
    """Removes the entries that have the values of `matching`, and returns them.

    Raises `ValidationFailed` where `matching` is empty, because that would remove every entry.
    """
    if not matching:
        detail = "Name at least one field: this would remove every entry."
        raise ValidationFailed(errors=[FieldError("?principal", "required", detail)])
    store = writable_store(cluster)
    locks.lock("acls", cluster.pk)
    with metadata_errors():
        removed = sorted(entry for entry in store.list_acls() if _matches(entry, matching))
    _remove_announced(actor, cluster, store, removed)
    return removed


def delete_acl(*, actor: Actor, cluster: Cluster, acl: str) -> None:
    """Removes the entry with the id `acl`. Raises `NotFound`."""
    store = writable_store(cluster)
    # The lock lets one of two concurrent requests find the entry, so the audit log has it once.
    locks.lock("acls", cluster.pk)
    _remove_announced(actor, cluster, store, [get_acl(cluster=cluster, acl=acl)])


def _remove_announced(
    actor: Actor, cluster: Cluster, store: ClusterStore, entries: Sequence[Acl]
) -> None:
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=DELETED,
            target=("cluster", cluster.pk),
            detail={"acls": [asdict(entry) for entry in entries]},
        ),
        metadata_errors(),
    ):
        repeat_unknown(lambda: store.remove_acls(entries))


def are_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced deletion was made. The store removes all of its entries or none."""
    existing = set(cluster_store(cluster_id).list_acls())
    return existing.isdisjoint(Acl(**acl) for acl in entry.detail["acls"])


def require_room(*, limits: ClusterLimits, existing: set[Acl], new: set[Acl]) -> None:
    """Raises `LimitReached` where the cluster may not have the `new` entries beside `existing`.

    For calls that only validate: the metadata store holds others to the limits itself.
    """
    if limits.acls is not None:
        adding = len(new - existing)
        check_room("acls", limit=limits.acls, used=len(existing), adding=adding)


def _matches(entry: Acl, matching: Mapping[str, str]) -> bool:
    fields = asdict(entry)
    return all(fields[name] == value for name, value in matching.items())
