"""Removes what a lost answer left of a credential: a user without a row, or a row to be removed."""

from __future__ import annotations

from brokers.metadata_records import Acl
from console.base.common.ids import is_id
from console.base.common.models import AuditEntry
from provisioning.administration.services.credentials import acls_to_end
from provisioning.administration.services.quotas import remove_quotas_of
from provisioning.cells import cluster_store
from provisioning.models import Cluster

USER = "User:"


def repair_credentials(*, cluster: Cluster) -> int:
    """Removes such users and rows with their ACLs and quotas; returns how many.

    The caller holds the cluster's lock. Whoever creates a credential holds it too, so a user whose
    row is about to be committed is not taken for a leftover. Raises `MetadataError`.
    """
    store = cluster_store(cluster.pk)
    rows = {credential.pk: credential for credential in cluster.credentials.all()}
    users = {user.user for user in store.list_users() if is_id(user.user, "cred")}
    acls = store.list_acls()
    leaving = {pk for pk, row in rows.items() if row.removed_at is not None}
    unrecorded = _unrecorded_users(cluster, acls, known=users | set(rows))
    leftovers = sorted((users - set(rows)) | leaving | unrecorded)
    for username in leftovers:
        store.remove_user(username)
        remove_quotas_of(store=store, user=username)
        row = rows.get(username)
        if row is not None:
            store.remove_acls(acls_to_end(store=store, credential=row))
        else:
            # Nobody ever had its password, so nobody else added ACLs to it.
            store.remove_acls([acl for acl in acls if acl.principal == USER + username])
    cluster.credentials.filter(pk__in=leftovers).delete()
    return len(leftovers)


def _unrecorded_users(cluster: Cluster, acls: list[Acl], *, known: set[str]) -> set[str]:
    """User names that only ACLs have, and no audit entry.

    The request that added those ACLs died before it made the user. ACLs that an owner added for a
    credential that existed once stay until somebody removes them.
    """
    principals = {acl.principal.removeprefix(USER) for acl in acls}
    names = {name for name in principals if is_id(name, "cred")} - known
    if not names:
        return set()
    recorded = AuditEntry.objects.filter(
        organization_id=cluster.organization_id, target_type="credential", target_id__in=names
    )
    return names - set(recorded.values_list("target_id", flat=True))
