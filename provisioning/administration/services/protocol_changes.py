"""Copies changes that clients made over the Kafka protocol into the audit log.

Brokers write such a change into the cluster's metadata, in the transaction of the change itself.
Here it is copied, and then removed there. The id of its audit entry is a digest of the change, so a
change that is read again (a worker died between the two, or the cell was restored from a backup)
gives the same entry: the log has each change once.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from brokers.errors import MetadataError
from brokers.metadata_records import ProtocolChange
from console.base.common.actor import ActorKind
from console.base.common.ids import RANDOM_CHARS
from console.base.common.models import AuditEntry
from console.base.common.models.audit import ACTION_CHARS_MAX, ACTOR_CHARS_MAX, TARGET_CHARS_MAX
from console.base.common.tenancy import organization_scope
from console.base.common.transactions import commit_so_far, task_transaction
from console.base.runtime.texts import storable, storable_json
from provisioning.cells import cluster_store
from provisioning.clusters.services.operations import enqueue_reconcile
from provisioning.models import Cluster, Credential

logger = logging.getLogger(__name__)

PAGE_CHANGES = 500
# A cluster whose clients never stop changing things must not keep the sweep from other clusters.
PAGES_MAX = 20
NO_REQUEST = "-"
ADDRESS_CHARS_MAX = 64
# How Kafka begins the name of a principal that is a user.
USER = "User:"


def ingest_protocol_changes(*, organization_id: str, cluster_id: str) -> int:
    """Copies the changes of a cluster's clients into the audit log; returns how many were read.

    A cell that does not answer raises nothing: the next sweep reads them.
    """
    store, read, users_changed = cluster_store(cluster_id), 0, False
    with task_transaction(), organization_scope(organization_id):
        try:
            for _ in range(PAGES_MAX):
                changes = store.changes(after=0, limit=PAGE_CHANGES)
                if not changes:
                    break
                entries = [entry_of(organization_id, cluster_id, change) for change in changes]
                AuditEntry.objects.bulk_create(entries, ignore_conflicts=True)
                # Only after the commit may the cell forget them.
                commit_so_far()
                store.forget_changes(changes[-1].sequence)
                users_changed |= any(change.target_type == "user" for change in changes)
                read += len(changes)
                if len(changes) < PAGE_CHANGES:
                    break
        except MetadataError as error:
            logger.warning("changes.later", extra={"cluster": cluster_id, "error": str(error)})
        if users_changed:
            # A reconcile gives users that clients made their rows.
            enqueue_reconcile(cluster=Cluster.objects.get(pk=cluster_id))
    return read


def entry_of(organization_id: str, cluster_id: str, change: ProtocolChange) -> AuditEntry:
    """The audit entry of a change. Pure: the same change gives the same entry with the same id."""
    target = change.target
    if change.target_type == "cluster":
        target = cluster_id
    elif not target.startswith(f"{cluster_id}/"):
        target = f"{cluster_id}/{target}"
    detail = {**change.detail, "client_id": change.client_id, "cluster_id": cluster_id}
    return AuditEntry(
        id=_id_of(cluster_id, change),
        organization_id=organization_id,
        created_at=datetime.fromtimestamp(change.at_ms / 1000, UTC),
        action=change.action[:ACTION_CHARS_MAX],
        actor_kind=ActorKind.KAFKA,
        actor_id=storable(change.principal)[:ACTOR_CHARS_MAX],
        target_type=change.target_type,
        target_id=storable(target)[:TARGET_CHARS_MAX],
        request_id=change.connection or NO_REQUEST,
        address=change.address[:ADDRESS_CHARS_MAX],
        detail=storable_json(detail),
    )


def names_of_principals(principals: Collection[str]) -> Mapping[str, str]:
    """Principal → name of the credential behind it. Reads in the caller's tenancy scope."""
    ids = {principal.removeprefix(USER): principal for principal in principals}
    credentials = Credential.objects.filter(pk__in=ids).values_list("pk", "name")
    return {ids[pk]: name for pk, name in credentials}


def _id_of(cluster_id: str, change: ProtocolChange) -> str:
    """The id of a change's audit entry, in the form of every id.

    It is a digest of more than the sequence number, because after a restore of the cell's metadata
    another change may have the same number.
    """
    parts: Sequence[object] = (
        *(cluster_id, change.sequence, change.at_ms, change.principal),
        *(change.action, change.target_type, change.target),
    )
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return f"aud_{base64.b32encode(digest).decode().lower()[:RANDOM_CHARS]}"
