"""The ACLs that roles of credentials and kinds of applications stand for. Pure.

`full` may do everything with topics, groups and transactions, and may describe the cluster. It may
not alter the cluster: whoever may do that can set the password of any user, also of the service's
own. Users and ACLs are managed through the API. Nor may it alter the cluster's configs, which would
let every application raise its own quotas: somebody who manages quotas with Kafka's tools needs an
ACL of its own for that, `ALTER_CONFIGS` on `CLUSTER`.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokers.metadata_records import Acl
from provisioning.choices import CredentialRole

CLUSTER = ("CLUSTER", "kafka-cluster")
TOPICS = ("TOPIC", "*")
GROUPS = ("GROUP", "*")
TRANSACTIONS = ("TRANSACTIONAL_ID", "*")

# ((resource type, resource name), operation).
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


@dataclass(frozen=True)
class TemplateValues:
    """The parameters of a template. `pattern_type` says how the topic's name is matched."""

    principal: str
    topic: str
    pattern_type: str = "LITERAL"
    group: str | None = None
    transactional_id: str | None = None


@dataclass(frozen=True)
class TemplateEntry:
    """One entry of a template. `name` is the parameter that holds the resource's name.

    Where `pattern_type` is None the entry has the topic's. An entry whose parameter is None is left
    out.
    """

    resource_type: str
    name: str
    operation: str
    pattern_type: str | None = "LITERAL"


@dataclass(frozen=True)
class Template:
    """The entries that one kind of application needs.

    Beside `principal` and `topic`, the parameters `needs` are required and `takes` are optional.
    """

    name: str
    description: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]
    entries: tuple[TemplateEntry, ...]


def _entries(
    resource_type: str, name: str, *operations: str, pattern_type: str | None = "LITERAL"
) -> tuple[TemplateEntry, ...]:
    return tuple(
        TemplateEntry(resource_type, name, operation, pattern_type) for operation in operations
    )


# As Kafka's own `kafka-acls --producer` and `--consumer`, without CREATE: topics are made on
# purpose. Streams: https://kafka.apache.org/documentation/streams/developer-guide/security
TEMPLATES: dict[str, Template] = {
    template.name: template
    for template in (
        Template(
            "producer",
            "Writes to topics; with a transactional id also in transactions.",
            needs=(),
            takes=("transactional_id",),
            entries=(
                *_entries("TOPIC", "topic", "WRITE", "DESCRIBE", pattern_type=None),
                *_entries("TRANSACTIONAL_ID", "transactional_id", "WRITE", "DESCRIBE"),
            ),
        ),
        Template(
            "consumer",
            "Reads topics as a member of a group.",
            needs=("group",),
            takes=(),
            entries=(
                *_entries("TOPIC", "topic", "READ", "DESCRIBE", pattern_type=None),
                *_entries("GROUP", "group", "READ"),
            ),
        ),
        Template(
            "streams",
            "A Kafka Streams application: reads and writes topics, and has topics, groups and "
            "transactions of its own whose names begin with its application id, the group.",
            needs=("group",),
            takes=("transactional_id",),
            entries=(
                *_entries("TOPIC", "topic", "READ", "WRITE", "DESCRIBE", pattern_type=None),
                *_entries("TOPIC", "group", "ALL", pattern_type="PREFIXED"),
                *_entries("GROUP", "group", "ALL", pattern_type="PREFIXED"),
                *_entries("TRANSACTIONAL_ID", "group", "ALL", pattern_type="PREFIXED"),
                *_entries("TRANSACTIONAL_ID", "transactional_id", "WRITE", "DESCRIBE"),
            ),
        ),
    )
}


def acls_of_template(*, template: Template, values: TemplateValues) -> list[Acl]:
    """The entries of a template, filled with values that `missing_parameters` found complete."""
    parameters = {name: getattr(values, name) for name in ("topic", "group", "transactional_id")}
    return [
        Acl(
            resource_type=entry.resource_type,
            resource_name=parameters[entry.name],
            pattern_type=entry.pattern_type or values.pattern_type,
            principal=values.principal,
            operation=entry.operation,
        )
        for entry in template.entries
        if parameters[entry.name] is not None
    ]


def missing_parameters(*, template: Template, values: TemplateValues) -> list[str]:
    """The names of the parameters that the template needs and that are None in `values`."""
    return [name for name in template.needs if getattr(values, name) is None]
