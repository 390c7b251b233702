"""Ends what a lost answer left of a credential: a user without a row, a row to be removed."""

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
    """Removes such users with their ACLs; gives how many.

    The caller holds the cluster's lock, as whoever makes a credential does: no user is taken for a
    leftover while its row is about to be committed. Raises `MetadataError`.
    """
    store = cluster_store(cluster.pk)
    rows = {credential.pk: credential for credential in cluster.credentials.all()}
    users = {user.user for user in store.list_users() if is_id(user.user, "cred")}
    acls = store.list_acls()
    leaving = {pk for pk, row in rows.items() if row.removed_at is not None}
    never = _never_told(cluster, acls, known=users | set(rows))
    gone = sorted((users - set(rows)) | leaving | never)
    for username in gone:
        store.remove_user(username)
        remove_quotas_of(store=store, user=username)
        row = rows.get(username)
        if row is not None:
            store.remove_acls(acls_to_end(store=store, credential=row))
        else:
            # Nobody ever had its password: all that there is of it was made with it.
            store.remove_acls([acl for acl in acls if acl.principal == USER + username])
    cluster.credentials.filter(pk__in=gone).delete()
    return len(gone)


def _never_told(cluster: Cluster, acls: list[Acl], *, known: set[str]) -> set[str]:
    """Names with ACLs alone, of which no log tells: who made them died before it made the user.

    Of a credential that was there once, entries that its owner added stay until they are removed.
    """
    principals = {acl.principal.removeprefix(USER) for acl in acls}
    names = {name for name in principals if is_id(name, "cred")} - known
    if not names:
        return set()
    told = AuditEntry.objects.filter(
        organization_id=cluster.organization_id, target_type="credential", target_id__in=names
    )
    return names - set(told.values_list("target_id", flat=True))
