"""Ends what a lost answer left of a credential: a user without a row, a row to be removed."""

from __future__ import annotations

from console.common.ids import is_id
from provisioning.cells import cluster_store
from provisioning.models import Cluster
from provisioning.services.credentials import acls_to_end
from provisioning.services.quotas import remove_quotas_of


def repair_credentials(*, cluster: Cluster) -> int:
    """Removes such users with their ACLs; gives how many.

    The caller holds the cluster's lock, as whoever makes a credential does: no user is taken for a
    leftover while its row is about to be committed. Raises `MetadataError`.
    """
    store = cluster_store(cluster.pk)
    rows = {credential.pk: credential for credential in cluster.credentials.all()}
    users = {user.user for user in store.list_users() if is_id(user.user, "cred")}
    leaving = {pk for pk, row in rows.items() if row.removed_at is not None}
    gone = sorted((users - set(rows)) | leaving)
    for username in gone:
        store.remove_user(username)
        remove_quotas_of(store=store, user=username)
        row = rows.get(username)
        if row is not None:
            store.remove_acls(acls_to_end(store=store, credential=row))
        else:
            # Nobody ever had its password: all that there is of it was made with it.
            principal = f"User:{username}"
            store.remove_acls([acl for acl in store.list_acls() if acl.principal == principal])
    cluster.credentials.filter(pk__in=gone).delete()
    return len(gone)
