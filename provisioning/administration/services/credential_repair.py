"""Makes the rows of a cluster's credentials match the users in its metadata store.

A lost answer may have left a user without a row, or a row that is to be removed. And clients make
and remove users over the Kafka protocol: each of these gets a row, by which it is listed, expires
and is deleted as any other credential.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Mapping

from brokers.metadata_records import Acl
from console.base.common.ids import is_id
from console.base.common.models import AuditEntry
from console.base.runtime.texts import REPLACEMENT, is_storable, storable_name
from provisioning.administration.services.credentials import acls_to_end
from provisioning.administration.services.quotas import remove_quotas_of
from provisioning.cells import cluster_store
from provisioning.choices import CredentialRole
from provisioning.kafka import SUPER_USER
from provisioning.models import Cluster, Credential
from provisioning.models.credential import KAFKA_USER_CHARS_MAX, NAME_CHARS_MAX

logger = logging.getLogger(__name__)

USER = "User:"


def repair_credentials(*, cluster: Cluster) -> int:
    """Removes leftovers with their ACLs and quotas, and returns how many; adopts clients' users.

    The caller holds the cluster's lock. Whoever creates a credential holds it too, so a user whose
    row is about to be committed is not taken for a leftover. Raises `MetadataError`.
    """
    store = cluster_store(cluster.pk)
    rows = {credential.username: credential for credential in cluster.credentials.all()}
    mechanisms = {
        user.user: user.mechanism for user in store.list_users() if user.user != SUPER_USER
    }
    users = {name for name in mechanisms if is_id(name, "cred")}
    acls = store.list_acls()
    leaving = {name for name, row in rows.items() if row.removed_at is not None}
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
    gone = [rows[name].pk for name in leftovers if name in rows]
    # A client removed them: its own change is in the audit log.
    gone += [row.pk for name, row in rows.items() if row.kafka_user and name not in mechanisms]
    cluster.credentials.filter(pk__in=gone).delete()
    adopted = set(mechanisms) - users - set(rows)
    _adopt(cluster, _storable_users(cluster, {name: mechanisms[name] for name in adopted}))
    return len(leftovers)


def _storable_users(cluster: Cluster, users: Mapping[str, str]) -> Mapping[str, str]:
    """The users of whom a row can be made; the others are logged.

    Brokers refuse such names; those of release 0.1.0 took any. The users can authenticate, and
    clients can remove them.
    """

    def fits(name: str) -> bool:
        return len(name) <= KAFKA_USER_CHARS_MAX and is_storable(name)

    odd = sorted(storable_name(name, NAME_CHARS_MAX) for name in users if not fits(name))
    if odd:
        logger.warning("credentials.odd_names", extra={"cluster": cluster.pk, "users": odd})
    return {name: mechanism for name, mechanism in users.items() if fits(name)}


def _adopt(cluster: Cluster, users: Mapping[str, str]) -> None:
    """Gives each user (name → mechanism) a row. Its name is the user's, or begins like that."""
    taken = set(cluster.credentials.named().values_list("name", flat=True)) if users else set()
    for username, mechanism in sorted(users.items()):
        name = free_name(username, taken)
        taken.add(name)
        Credential.objects.create(
            organization_id=cluster.organization_id,
            cluster=cluster,
            name=name,
            role=CredentialRole.NONE,
            mechanism=mechanism,
            kafka_user=username,
        )


def free_name(given: str, taken: Collection[str]) -> str:
    """The name, cut to what a name may have, with a number where it is taken. Pure.

    Characters that nobody sees are replaced: some turn the direction of writing.
    """
    given = "".join(char if char.isprintable() else REPLACEMENT for char in given)
    name = given[:NAME_CHARS_MAX]
    for number in itertools.count(2):
        if name not in taken:
            break
        ending = f" ({number})"
        name = given[: NAME_CHARS_MAX - len(ending)] + ending
    return name


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
