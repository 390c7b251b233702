"""Credentials of Kafka clients: a row with a name, and a user with ACLs in the metadata store.

The password is made here, or by a caller that keeps secrets itself. It is shown once and stored
nowhere: the metadata store holds a salted key that verifies it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from brokers.errors import MetadataError
from brokers.metadata import ClusterStore
from brokers.metadata_records import Acl, ClusterLimits, Mechanism
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import AppError, FieldError, Unavailable, ValidationFailed
from console.base.common.models import AuditEntry
from console.base.common.names import require_free_name
from console.base.limits.services import check_room
from provisioning.administration.acl_templates import acls_of_role
from provisioning.administration.services.acls import require_room
from provisioning.administration.services.announcing import announced
from provisioning.administration.services.effect import Effect, wait_effect
from provisioning.administration.services.quotas import remove_quotas_of
from provisioning.administration.services.repeating import repeat_unknown
from provisioning.administration.services.topics import writable_store
from provisioning.cells import cluster_store, metadata_errors
from provisioning.choices import CredentialRole
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.clusters.services.operations import enqueue_reconcile
from provisioning.errors import (
    CredentialReplaced,
    OutcomeUnknown,
)
from provisioning.kafka import SUPER_USER
from provisioning.models import Cluster, Credential

logger = logging.getLogger(__name__)

DELETED = "credential.delete"
PASSWORD_BYTES = 24
SCRAM_SHA_512: Mechanism = "SCRAM-SHA-512"
# Of every password the metadata store gets the keys for both, so that clients may use either, and
# nobody learns from the one that a user lacks who exists.
MECHANISMS: tuple[Mechanism, ...] = ("SCRAM-SHA-256", SCRAM_SHA_512)


@dataclass(frozen=True)
class CreatedCredential:
    """A new credential with its password, which nobody can read again."""

    credential: Credential
    password: str
    effect: Effect

    @property
    def mechanisms(self) -> list[str]:
        """The SCRAM mechanisms that it can authenticate by: both."""
        return sorted(MECHANISMS)


def create_credential(  # noqa: PLR0913 (what a credential consists of)
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    role: str,
    mechanism: Mechanism = SCRAM_SHA_512,
    password: str | None = None,
    expires_at: datetime | None = None,
    validate_only: bool = False,
) -> CreatedCredential:
    """Makes a user with the ACLs of a role. Raises `LimitReached`, `NameTaken`, `OutcomeUnknown`.

    The row is written once the cell has the user: where the metadata store's answer is lost there
    is none, and the sweep removes the user. With `validate_only` nothing is changed.
    """
    store, limits = writable_store(cluster), limits_of_cluster(cluster=cluster)
    # The sweep holds this lock too, because it removes users that have no row.
    locks.lock("cluster", cluster.pk)
    rotated = rotated_users(cluster=cluster)
    with metadata_errors():
        used = count_users(store=store, rotated=rotated)
    if limits.credentials is not None:
        check_room("credentials", limit=limits.credentials, used=used, adding=1)
        # The metadata store counts those that were rotated too.
        limits = replace(limits, credentials=limits.credentials + len(rotated))
    _require_free_name(cluster, name)
    require_future(expires_at)
    credential = Credential(
        organization_id=cluster.organization_id,
        cluster=cluster,
        name=name,
        role=role,
        mechanism=mechanism,
        expires_at=expires_at,
    )
    acls = acls_of_role(role=CredentialRole(role), principal=credential.principal)
    created = make_user(
        store=store,
        credential=credential,
        acls=acls,
        limits=limits,
        password=password,
        validate_only=validate_only,
    )
    if not validate_only:
        credential.save(force_insert=True)
        detail = {"name": name, "role": role, "expires_at": shown_moment(expires_at)}
        audit_credential(actor, credential, "credential.create", detail)
    return created


def stored_mechanisms(*, cluster: Cluster) -> Mapping[str, list[str]] | None:
    """User name → the SCRAM mechanisms that it has keys for, sorted; None where that is not known.

    A user that was made before both were stored has one, until its credential is rotated: the other
    one's key cannot be derived without the password.
    """
    try:
        users = cluster_store(cluster.pk).list_users()
    except MetadataError as error:
        logger.info("mechanisms.unknown", extra={"cluster": cluster.pk, "error": str(error)})
        return None
    mechanisms: dict[str, list[str]] = {}
    for user in sorted(users, key=lambda user: user.mechanism):
        mechanisms.setdefault(user.user, []).append(user.mechanism)
    return mechanisms


def make_user(
    *,
    store: ClusterStore,
    credential: Credential,
    acls: Sequence[Acl],
    limits: ClusterLimits,
    password: str | None,
    validate_only: bool,
) -> CreatedCredential:
    """Makes a new credential's user and ACLs in the metadata store, and waits for the brokers.

    Raises `LimitReached`, `OutcomeUnknown`.
    """
    password = password or secrets.token_urlsafe(PASSWORD_BYTES)
    with metadata_errors():
        if validate_only:
            require_room(limits=limits, existing=set(store.list_acls()), new=set(acls))
            return CreatedCredential(credential, password, Effect(()))
        # ACLs first, so that the user has its rights from its first connection on.
        repeat_unknown(lambda: store.add_acls(acls, limits=limits))
        set_user = partial(store.set_user, credential.username, password, MECHANISMS)
        repeat_unknown(partial(set_user, limits=limits))
    effect = wait_effect(cluster=credential.cluster, acls=acls, user=credential.username)
    return CreatedCredential(credential, password, effect)


def update_credential(
    *, actor: Actor, credential: Credential, changes: Mapping[str, Any]
) -> Credential:
    """Changes name or expiry of a credential. The caller holds the cluster's lock.

    Raises `NameTaken`, `ValidationFailed`, and `CredentialReplaced` where a credential that was
    rotated would get another name or no expiry.
    """
    changed = {name: value for name, value in changes.items() if getattr(credential, name) != value}
    if not changed:
        return credential
    if credential.replaced_at is not None and (
        "name" in changed or changed.get("expires_at", now()) is None
    ):
        raise CredentialReplaced("Only when it ends can be changed.")
    if "name" in changed:
        locks.lock("cluster", credential.cluster_id)
        _require_free_name(credential.cluster, changed["name"])
    require_future(changed.get("expires_at"))
    detail = changes_of(credential, changed)
    for name, value in changed.items():
        setattr(credential, name, value)
    credential.generation += 1
    credential.save(update_fields=[*changed, "generation"])
    audit_credential(actor, credential, "credential.update", detail)
    return credential


def delete_credential(*, actor: Actor, credential: Credential) -> AppError | None:
    """Removes a credential's user, whose connections close within seconds, and its role's ACLs.

    Where the metadata store did not confirm the removal, it returns the error to answer with. The
    caller then commits all the same, because the sweep goes on with the removal.
    """
    locks.lock("cluster", credential.cluster_id)
    with announced(
        actor=actor,
        cluster=credential.cluster,
        action=DELETED,
        target=("credential", credential.pk),
        detail={"name": credential.name, "cluster_id": credential.cluster_id},
    ):
        if end_credential(credential=credential):
            return None
        return OutcomeUnknown("The removal has begun and goes on by itself.")


def is_ended(cluster_id: str, entry: AuditEntry) -> bool:
    """Whether an announced removal was begun; where the user is gone, it removes the rest too.

    Raises `Unavailable` while somebody else holds the cluster's lock: a sweep waits for nobody.
    """
    if not locks.try_lock("cluster", cluster_id):
        raise Unavailable("Another request or worker changes the cluster at this moment.")
    row = Credential.objects.select_related("cluster").filter(pk=entry.target_id).first()
    username = entry.target_id if row is None else row.username
    if username in {user.user for user in cluster_store(cluster_id).list_users()}:
        return False
    if row is not None:
        end_credential(credential=row)
    return True


def end_credential(*, credential: Credential) -> bool:
    """Removes user, ACLs, quotas and row; returns whether the metadata store confirmed it.

    Where it did not, the row stays with `removed_at`, and the sweep goes on with the removal. The
    caller holds the cluster's lock.
    """
    cluster = credential.cluster
    store = cluster_store(cluster.pk)
    try:
        repeat_unknown(lambda: store.remove_user(credential.username))
        ending = acls_to_end(store=store, credential=credential)
        repeat_unknown(lambda: store.remove_acls(ending))
        remove_quotas_of(store=store, user=credential.username)
    except MetadataError:
        credential.removed_at = now()
        credential.save(update_fields=["removed_at"])
        enqueue_reconcile(cluster=cluster)
        return False
    credential.delete()
    return True


def acls_to_end(*, store: ClusterStore, credential: Credential) -> list[Acl]:
    """The entries that go with a credential: those of its role.

    Of a credential that was rotated all entries go, because its successor has copies of them.
    """
    role = CredentialRole(credential.role)
    ending = set(acls_of_role(role=role, principal=credential.principal))
    if credential.replaced_at is not None:
        ending |= {entry for entry in store.list_acls() if entry.principal == credential.principal}
    return sorted(ending)


def rotated_users(*, cluster: Cluster) -> set[str]:
    """The users of credentials that were rotated and still authenticate: no limit counts them."""
    return {row.username for row in cluster.credentials.current().exclude(replaced_at=None)}


def count_users(*, store: ClusterStore, rotated: Set[str]) -> int:
    """How many users the limit counts: all but the service's own and those that were rotated.

    Users that clients made over the Kafka protocol are among them. Raises `MetadataError`.
    """
    return len({user.user for user in store.list_users()} - {SUPER_USER} - rotated)


def require_future(expires_at: datetime | None) -> None:
    """Raises `ValidationFailed` for an expiry in the past."""
    if expires_at is not None and expires_at <= now():
        detail = "It lies in the past."
        raise ValidationFailed(errors=[FieldError("/expires_at", "invalid", detail)])


def shown_moment(value: object) -> object:
    """A `datetime` as ISO 8601 text, for the audit log; any other value unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value


def _require_free_name(cluster: Cluster, name: str) -> None:
    require_free_name(cluster.credentials.named(), name, "A credential of this cluster")


def audit_credential(
    actor: Actor, credential: Credential, action: str, detail: Mapping[str, object]
) -> None:
    """Adds an entry about a credential to the audit log."""
    record_audit(
        actor=actor,
        action=action,
        target_type="credential",
        target_id=credential.pk,
        detail={**detail, "cluster_id": credential.cluster_id},
    )
