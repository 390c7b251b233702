"""Entries of a cluster's access control list, in its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from brokers.metadata import ClusterStore
from brokers.metadata_records import Acl
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError, NotFound, ValidationFailed
from console.base.common.models import AuditEntry
from console.base.limits import services as limits
from provisioning.administration.acl_ids import acl_id
from provisioning.administration.acl_templates import (
    TEMPLATES,
    TemplateValues,
    acls_of_template,
    missing_parameters,
)
from provisioning.administration.services.announcing import announced, tell_done
from provisioning.administration.services.effect import Effect, wait_effect
from provisioning.administration.services.repeating import repeat_unknown
from provisioning.administration.services.topics import writable_store
from provisioning.cells import cluster_store, metadata_errors
from provisioning.models import Cluster

DELETED = "acl.delete"


def list_acls(*, cluster: Cluster, wanted: Mapping[str, str]) -> list[Acl]:
    """Entries whose fields are as `wanted`, in order. Without fields, all of them."""
    with metadata_errors():
        entries = cluster_store(cluster.pk).list_acls()
    return sorted(entry for entry in entries if _matches(entry, wanted))


def get_acl(*, cluster: Cluster, acl: str) -> Acl:
    """The entry with an id. Raises `NotFound`."""
    for entry in list_acls(cluster=cluster, wanted={}):
        if acl_id(entry) == acl:
            return entry
    raise NotFound


def template_acls(*, template: str, values: TemplateValues) -> list[Acl]:
    """The entries that a template gives. Raises `ValidationFailed` for what it needs."""
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
    """Adds entries, all or none; those that are there stay. Raises `LimitReached`.

    Running brokers have them when this returns, or a condition says that it is not known.
    """
    store = writable_store(cluster)
    # Of two requests at once the second counts the first's entries.
    locks.lock("acls", cluster.pk)
    with metadata_errors():
        there = set(store.list_acls())
        require_room(cluster=cluster, there=there, new=set(acls))
        if validate_only:
            return Effect(())
        tell_done(cluster=cluster, action=DELETED)
        repeat_unknown(lambda: store.add_acls(acls))
    record_audit(
        actor=actor,
        action="acl.create",
        target_type="cluster",
        target_id=cluster.pk,
        detail={"acls": [asdict(entry) for entry in acls]},
    )
    return wait_effect(cluster=cluster, acls=acls)


def delete_acls(*, actor: Actor, cluster: Cluster, wanted: Mapping[str, str]) -> list[Acl]:
    """Removes the entries that match and gives them. Raises `ValidationFailed` without a field."""
    if not wanted:
        detail = "Name at least one field: this would remove every entry."
        raise ValidationFailed(errors=[FieldError("?principal", "required", detail)])
    store = writable_store(cluster)
    locks.lock("acls", cluster.pk)
    with metadata_errors():
        going = sorted(entry for entry in store.list_acls() if _matches(entry, wanted))
    _remove(actor, cluster, store, going)
    return going


def delete_acl(*, actor: Actor, cluster: Cluster, acl: str) -> None:
    """Removes the entry with an id. Raises `NotFound`."""
    store = writable_store(cluster)
    # Of two requests at once one finds it, and one entry tells of it.
    locks.lock("acls", cluster.pk)
    _remove(actor, cluster, store, [get_acl(cluster=cluster, acl=acl)])


def _remove(actor: Actor, cluster: Cluster, store: ClusterStore, going: Sequence[Acl]) -> None:
    with (
        announced(
            actor=actor,
            cluster=cluster,
            action=DELETED,
            target=("cluster", cluster.pk),
            detail={"acls": [asdict(entry) for entry in going]},
        ),
        metadata_errors(),
    ):
        repeat_unknown(lambda: store.remove_acls(going))


def are_gone(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced deletion was done: they go together, or none of them."""
    there = set(cluster_store(cluster_id).list_acls())
    return there.isdisjoint(Acl(**acl) for acl in entry.detail["acls"])


def require_room(*, cluster: Cluster, there: set[Acl], new: set[Acl]) -> None:
    """Raises `LimitReached` where the list would become too long."""
    limits.require_room(
        "acls",
        organization_id=cluster.organization_id,
        cluster_id=cluster.pk,
        used=len(there),
        adding=len(new - there),
    )


def _matches(entry: Acl, wanted: Mapping[str, str]) -> bool:
    fields = asdict(entry)
    return all(fields[name] == value for name, value in wanted.items())
