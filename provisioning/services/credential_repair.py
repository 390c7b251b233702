"""Ends what a lost answer left of a credential: a user without a row, a row to be removed."""

from __future__ import annotations

from console.common.ids import is_id
from provisioning.acl_templates import acls_of_role
from provisioning.cells import cluster_store
from provisioning.choices import CredentialRole
from provisioning.models import Cluster


def repair_credentials(*, cluster: Cluster) -> int:
    """Removes such users with their role's ACLs; gives how many.

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
        # Of a user without a row the role is not known: any of them may have been written.
        for role in CredentialRole:
            store.remove_acls(acls_of_role(role=role, principal=f"User:{username}"))
    cluster.credentials.filter(pk__in=gone).delete()
    return len(gone)
