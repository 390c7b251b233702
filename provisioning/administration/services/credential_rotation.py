"""Rotation of credentials: makes another with the same rights, and both authenticate for a while.

A credential's user name is its id, so the new credential is a new user. It gets copies of the ACLs
and quotas that the replaced one has at that moment, and takes over its name.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from brokers.metadata import ClusterStore
from brokers.metadata_records import Acl
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.clock import now
from provisioning.administration.services.credentials import (
    CreatedCredential,
    audit_credential,
    make_user,
    require_future,
    shown_moment,
)
from provisioning.administration.services.quotas import copy_quotas
from provisioning.administration.services.topics import writable_store
from provisioning.cells import metadata_errors
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.errors import CredentialReplaced, RotationInProgress
from provisioning.models import Credential


def rotate_credential(
    *,
    actor: Actor,
    credential: Credential,
    overlap_s: int,
    password: str | None = None,
    expires_at: datetime | None = None,
    validate_only: bool = False,
) -> CreatedCredential:
    """Makes another credential in the place of `credential`, whose row is locked.

    Both authenticate for `overlap_s` seconds; then `credential` ends, or earlier where it expires
    earlier by itself. Raises `CredentialReplaced`, `RotationInProgress`, `ValidationFailed`,
    `OutcomeUnknown`.
    """
    cluster = credential.cluster
    store = writable_store(cluster)
    locks.lock("cluster", cluster.pk)
    _require_rotatable(credential)
    require_future(expires_at)
    moment = now()
    ends_at = moment + timedelta(seconds=overlap_s)
    if credential.expires_at is not None:
        ends_at = min(ends_at, credential.expires_at)
    successor = Credential(
        organization_id=credential.organization_id,
        cluster=cluster,
        name=credential.name,
        role=credential.role,
        mechanism=credential.mechanism,
        expires_at=expires_at,
        replaces=credential,
    )
    with metadata_errors():
        acls = copied_acls(store=store, of=credential.principal, to=successor.principal)
    created = make_user(
        store=store,
        credential=successor,
        acls=acls,
        # Whoever has as many credentials as the limit allows can rotate them all the same.
        limits=replace(limits_of_cluster(cluster=cluster), credentials=None),
        password=password,
        validate_only=validate_only,
    )
    if not validate_only:
        with metadata_errors():
            copy_quotas(store=store, of=credential.username, to=successor.username)
        # The rows are written once the cell has the user.
        credential.replaced_at, credential.expires_at = moment, ends_at
        credential.generation += 1
        credential.save(update_fields=["replaced_at", "expires_at", "generation"])
        successor.save(force_insert=True)
        detail = {"replaces": credential.pk, "replaced_expires_at": shown_moment(ends_at)}
        audit_credential(actor, successor, "credential.rotate", detail)
    return created


def copied_acls(*, store: ClusterStore, of: str, to: str) -> list[Acl]:
    """The entries of the principal `of`, rewritten for the principal `to`."""
    return [replace(entry, principal=to) for entry in store.list_acls() if entry.principal == of]


def _require_rotatable(credential: Credential) -> None:
    if credential.replaced_at is not None:
        detail = f"Rotate {credential.replaced_by or 'the one in its place'} instead."
        raise CredentialReplaced(detail)
    before = credential.replaces
    if before is not None and before.removed_at is None:
        raise RotationInProgress(
            f"{before.pk} still authenticates, until {before.expires_at:%Y-%m-%d %H:%M} UTC: "
            "delete it first.",
            extra={"credential_id": before.pk},
        )
