"""Roles of credentials as ACLs. Pure.

`full` may do everything with topics, groups and transactions, and look at the cluster. It may not
alter the cluster: whoever may can give any user a password, the service's own among them. Users and
ACLs are managed through the API.
"""

from __future__ import annotations

from brokers.metadata_records import Acl
from provisioning.choices import CredentialRole

CLUSTER = ("CLUSTER", "kafka-cluster")
TOPICS = ("TOPIC", "*")
GROUPS = ("GROUP", "*")
TRANSACTIONS = ("TRANSACTIONAL_ID", "*")

Grant = tuple[tuple[str, str], str]

GRANTS: dict[CredentialRole, tuple[Grant, ...]] = {
    CredentialRole.FULL: (
        (TOPICS, "ALL"),
        (GROUPS, "ALL"),
        (TRANSACTIONS, "ALL"),
        (CLUSTER, "CREATE"),
        (CLUSTER, "DESCRIBE"),
        (CLUSTER, "DESCRIBE_CONFIGS"),
        (CLUSTER, "IDEMPOTENT_WRITE"),
    ),
    # WRITE and READ imply DESCRIBE.
    CredentialRole.PRODUCER: (
        (TOPICS, "WRITE"),
        (TRANSACTIONS, "WRITE"),
        (CLUSTER, "IDEMPOTENT_WRITE"),
    ),
    CredentialRole.CONSUMER: ((TOPICS, "READ"), (GROUPS, "READ")),
    CredentialRole.NONE: (),
}


def acls_of_role(*, role: CredentialRole, principal: str) -> list[Acl]:
    """The entries that a role gives a principal (`User:<name>`)."""
    return [
        Acl(
            resource_type=resource_type,
            resource_name=resource_name,
            principal=principal,
            operation=operation,
        )
        for (resource_type, resource_name), operation in GRANTS[role]
    ]
