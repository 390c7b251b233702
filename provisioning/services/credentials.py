"""Credentials of Kafka clients: a row with a name, and a user with ACLs in the metadata store.

The password is made here (or by a caller that keeps secrets itself), shown once, and kept by
nobody: the store holds what verifies it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from brokers.errors import MetadataError
from brokers.metadata_records import Mechanism
from console.common import locks
from console.common.actor import Actor
from console.common.audit import record_audit
from console.common.clock import now
from console.common.conf import config
from console.common.errors import AppError, FieldError, LimitReached, Quota
from provisioning.acl_templates import acls_of_role
from provisioning.cells import cluster_store, metadata_errors
from provisioning.choices import CredentialRole
from provisioning.errors import NameTaken, OutcomeUnknown
from provisioning.models import Cluster, Credential
from provisioning.services.acls import require_room
from provisioning.services.clusters import enqueue_reconcile
from provisioning.services.effect import Effect, wait_effect
from provisioning.services.repeating import repeat_unknown
from provisioning.services.topics import writable_store

PASSWORD_BYTES = 24
SCRAM_SHA_512: Mechanism = "SCRAM-SHA-512"


@dataclass(frozen=True)
class CreatedCredential:
    """A new credential, and its password: the only time that it is known."""

    credential: Credential
    password: str
    effect: Effect


def create_credential(  # noqa: PLR0913 (what a credential consists of)
    *,
    actor: Actor,
    cluster: Cluster,
    name: str,
    role: str,
    mechanism: Mechanism = SCRAM_SHA_512,
    password: str | None = None,
    validate_only: bool = False,
) -> CreatedCredential:
    """Makes a user with the ACLs of a role. Raises `LimitReached`, `NameTaken`, `OutcomeUnknown`.

    Where the metadata store's answer is lost there is no row, and the sweep removes the user. With
    `validate_only` the store is left alone, and the caller takes the row back.
    """
    store = writable_store(cluster)
    # The sweep holds it too: it takes a user without a row for a leftover.
    locks.lock("cluster", cluster.pk)
    current = cluster.credentials.current()
    used, limit = current.count(), config().limits.credentials
    if used >= limit:
        raise LimitReached(quota=Quota("credentials", limit, used))
    if current.filter(name=name).exists():
        detail = f"A credential of this cluster is named {name}."
        raise NameTaken(detail, errors=[FieldError("/name", "name_taken", detail)])
    credential = Credential.objects.create(
        organization_id=cluster.organization_id,
        cluster=cluster,
        name=name,
        role=role,
        mechanism=mechanism,
    )
    password = password or secrets.token_urlsafe(PASSWORD_BYTES)
    acls = acls_of_role(role=CredentialRole(role), principal=credential.principal)
    with metadata_errors():
        require_room(there=set(store.list_acls()), new=set(acls))
        if validate_only:
            return CreatedCredential(credential, password, Effect(()))
        # ACLs first: a user that authenticates can do what it may.
        repeat_unknown(lambda: store.add_acls(acls))
        repeat_unknown(lambda: store.set_user(credential.username, password, mechanism))
    _audit(actor, credential, "credential.create", {"name": name, "role": role})
    effect = wait_effect(cluster=cluster, acls=acls, user=credential.username)
    return CreatedCredential(credential, password, effect)


def delete_credential(*, actor: Actor, credential: Credential) -> AppError | None:
    """Ends a credential: its user, whose connections close within seconds, and its role's ACLs.

    Gives the error to answer with where the metadata store did not confirm it; the removal then
    goes on by itself, so the change must be kept.
    """
    cluster = credential.cluster
    locks.lock("cluster", cluster.pk)
    credential.removed_at = now()
    credential.save(update_fields=["removed_at"])
    _audit(actor, credential, "credential.delete", {"name": credential.name})
    store = cluster_store(cluster.pk)
    role = CredentialRole(credential.role)
    acls = acls_of_role(role=role, principal=credential.principal)
    try:
        repeat_unknown(lambda: store.remove_user(credential.username))
        repeat_unknown(lambda: store.remove_acls(acls))
    except MetadataError:
        enqueue_reconcile(cluster=cluster)
        return OutcomeUnknown("The removal has begun and goes on by itself.")
    credential.delete()
    return None


def _audit(actor: Actor, credential: Credential, action: str, detail: dict[str, str]) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="credential",
        target_id=credential.pk,
        detail={**detail, "cluster_id": credential.cluster_id},
    )
