"""Commands for a cluster's ACLs, credentials, quotas and consumer groups."""

from __future__ import annotations

from typing import Any

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field, Kind
from console.programs.cli.tables.shorthand import (
    choice,
    expiry,
    flag,
    integer,
    listed,
    moment,
    name,
    number,
    text,
    validate_only,
    wake,
)

ABOUT = {
    "acl": "Entries of a cluster's access control list.",
    "credential": "User names and passwords of Kafka clients.",
    "quota": "How much users, client ids and addresses may do.",
    "group": "Consumer groups and their offsets. `freshet lag` watches their lag.",
}
CLUSTER = "/clusters/{cluster_id}"
RESOURCE_TYPES = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
OPERATIONS = (
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
PATTERN_TYPES = ("LITERAL", "PREFIXED")
ACL_COLUMNS = (
    "principal permission operation resource:resource_type name:resource_name "
    "pattern:pattern_type host id"
)
TARGETS = ("earliest", "latest", "offset", "timestamp", "shift")


def _acl_fields(*, query: bool) -> tuple[Field, ...]:
    """Returns the fields of an ACL. `query`: of a search, in which none is required."""
    needed = not query
    return (
        text("principal", "`User:` and a user name, or `User:*`.", query=query, required=needed),
        choice(
            "resource_type", "The kind of resource.", RESOURCE_TYPES, query=query, required=needed
        ),
        text(
            "resource_name",
            "Its name, a prefix, `*`, or `kafka-cluster`.",
            query=query,
            required=needed,
        ),
        choice(
            "pattern_type",
            "Whether the name is a prefix. Default: LITERAL.",
            PATTERN_TYPES,
            query=query,
        ),
        choice("operation", "What may be done.", OPERATIONS, query=query, required=needed),
        choice("permission", "Default: ALLOW.", ("ALLOW", "DENY"), query=query),
        text("host", "The address that clients come from. Default: `*`.", query=query),
    )


def _without_ids(entries: Any) -> Any:
    """Returns entries of a file without the ids that a list shows: a new entry takes none."""
    if not isinstance(entries, list):
        return entries
    return [
        {name: value for name, value in entry.items() if name != "id"}
        if isinstance(entry, dict)
        else entry
        for entry in entries
    ]


def _parse_partitions(texts: list[str]) -> list[dict[str, Any]]:
    """Returns the API's items for texts like `TOPIC` or `TOPIC:0,1`. Raises `ValueError`."""
    items = []
    for value in texts:
        topic, colon, numbers = value.partition(":")
        item: dict[str, Any] = {"topic": topic}
        if colon:
            try:
                item["partitions"] = [int(number) for number in numbers.split(",")]
            except ValueError:
                message = f"--topic {value}: write it like orders or orders:0,1."
                raise ValueError(message) from None
        items.append(item)
    return items


def _entity_fields(*, query: bool) -> tuple[Field, ...]:
    return (
        text("user", "A user name; an empty one means all others.", query=query),
        text(
            "client_id",
            "A client id; an empty one means all others.",
            query=query,
            option="client-id",
        ),
        text("ip", "An address; an empty one means all others.", query=query),
    )


ACLS = (
    CommandRow(
        "acl list",
        f"GET {CLUSTER}/acls",
        "List entries: all, or those that match.",
        _acl_fields(query=True),
        Shape.PAGES,
        ACL_COLUMNS,
    ),
    CommandRow(
        "acl create",
        f"POST {CLUSTER}/acls",
        "Add an entry.",
        (*_acl_fields(query=False), validate_only()),
    ),
    CommandRow(
        "acl create-many",
        f"POST {CLUSTER}/acls:batch",
        "Add the entries of a JSON file, all or none: a list of what `acl list -o json` shows.",
        (
            Field(
                "items",
                "The file; `-` is the standard input.",
                Kind.FILE,
                required=True,
                option="file",
                parse=_without_ids,
            ),
            validate_only(),
        ),
        Shape.ITEMS,
        ACL_COLUMNS,
    ),
    CommandRow("acl describe", f"GET {CLUSTER}/acls/{{id}}", "An entry."),
    CommandRow(
        "acl delete",
        f"DELETE {CLUSTER}/acls/{{id}}",
        "Remove an entry.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "acl delete-matching",
        f"DELETE {CLUSTER}/acls",
        "Remove all entries that match what is given, and show them.",
        _acl_fields(query=True),
        Shape.ITEMS,
        ACL_COLUMNS,
        Confirm.YES,
    ),
    CommandRow(
        "acl templates",
        "GET /acl-templates",
        "List templates: what applications of a kind need.",
        shape=Shape.PAGES,
        columns="template description needs takes",
    ),
    CommandRow(
        "acl apply-template",
        f"POST {CLUSTER}/acls:apply-template",
        "Give a user what an application of a kind needs.",
        (
            Field(
                "template",
                "The template.",
                Kind.CHOICE,
                argument=True,
                choices=("consumer", "producer", "streams"),
            ),
            text("principal", "`User:` and a user name.", required=True),
            text("topic", "A name, a prefix, or `*`.", required=True),
            choice("pattern_type", "Whether --topic is a prefix. Default: LITERAL.", PATTERN_TYPES),
            text("group", "The consumer group, or a streams application's id."),
            text("transactional_id", "A producer's, for transactions.", option="transactional-id"),
            validate_only(),
        ),
        Shape.ITEMS,
        ACL_COLUMNS,
    ),
)

CREDENTIALS = (
    CommandRow(
        "credential list",
        f"GET {CLUSTER}/credentials",
        "A cluster's credentials.",
        shape=Shape.PAGES,
        columns="name id username role mechanisms created_at expires_at replaced_by",
    ),
    CommandRow(
        "credential create",
        f"POST {CLUSTER}/credentials",
        "Make a credential. Its password is shown only now.",
        (
            name(),
            choice(
                "role",
                "Which ACLs it begins with; `none`: none.",
                ("full", "producer", "consumer", "none"),
                required=True,
            ),
            choice("mechanism", "Default: SCRAM-SHA-512.", ("SCRAM-SHA-512", "SCRAM-SHA-256")),
            Field(
                "password", "One of your own, 16 to 128 characters; better left out.", Kind.SECRET
            ),
            expiry(),
            validate_only(),
        ),
    ),
    CommandRow(
        "credential describe",
        f"GET {CLUSTER}/credentials/{{id}}",
        "A credential without its password.",
    ),
    CommandRow(
        "credential update",
        f"PATCH {CLUSTER}/credentials/{{id}}",
        "Rename a credential, or set when it ends.",
        (text("name", "Another name."), expiry(), validate_only()),
    ),
    CommandRow(
        "credential rotate",
        f"POST {CLUSTER}/credentials/{{id}}:rotate",
        "Replace a credential by a new one. Both work for a while. The password is shown only now.",
        (
            integer("overlap_s", "Seconds in which both work. Default: a day."),
            Field(
                "password", "One of your own, 16 to 128 characters; better left out.", Kind.SECRET
            ),
            expiry("When the new one ends by itself; `never` for never."),
            validate_only(),
        ),
    ),
    CommandRow(
        "credential delete",
        f"DELETE {CLUSTER}/credentials/{{id}}",
        "Remove a credential; its connections end.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

QUOTAS = (
    CommandRow(
        "quota list",
        f"GET {CLUSTER}/quotas",
        "All quotas of a cluster.",
        shape=Shape.PAGES,
        columns="user client_id ip produce:produce_bytes_per_second "
        "fetch:fetch_bytes_per_second request_%:request_percentage connections "
        "connections/s:connections_per_second id",
    ),
    CommandRow(
        "quota set",
        f"PUT {CLUSTER}/quotas",
        "Set all quotas of a user, a client id, both, or an address. What is left out is not "
        "limited.",
        (
            *_entity_fields(query=False),
            number("produce_bytes_per_second", "Bytes a second.", option="produce"),
            number("fetch_bytes_per_second", "Bytes a second.", option="fetch"),
            number(
                "request_percentage",
                "Percent of the time of one thread.",
                option="request-percentage",
            ),
            integer("connections", "Connections of a user at one time."),
            number("connections_per_second", "New connections of an address in a second."),
            validate_only(),
        ),
    ),
    CommandRow("quota describe", f"GET {CLUSTER}/quotas/{{id}}", "The quotas of one entity."),
    CommandRow(
        "quota delete",
        f"DELETE {CLUSTER}/quotas/{{id}}",
        "Remove quotas by their id.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "quota clear",
        f"DELETE {CLUSTER}/quotas",
        "Remove the quotas of a user, a client id, both, or an address.",
        _entity_fields(query=True),
        Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

GROUPS = (
    CommandRow(
        "group list",
        f"GET {CLUSTER}/groups",
        "Consumer groups with their lag.",
        shape=Shape.PAGES,
        columns="group state type lag lag_seconds sampled_at",
    ),
    CommandRow(
        "group describe",
        f"GET {CLUSTER}/groups/{{group}}",
        "A group: its members, and its lag in each partition.",
    ),
    CommandRow(
        "group reset-offsets",
        f"POST {CLUSTER}/groups/{{group}}/reset-offsets",
        "Move the offsets of a group that has no members. --dry-run shows the plan.",
        (
            choice("to", "Where to.", TARGETS),
            text(
                "to",
                "To the offsets of another group.",
                option="to-group",
                parse=lambda group: {"group": group},
            ),
            integer("offset", "With --to offset."),
            moment("timestamp", "With --to timestamp."),
            integer(
                "shift", "With --to shift: so many records forward, or back where it is negative."
            ),
            listed(
                "topics",
                "TOPIC, or TOPIC:PARTITION,…. Default: all partitions that the group committed.",
                "topic",
                parse=_parse_partitions,
            ),
            flag("dry_run", "Show the plan, change nothing."),
            wake(),
        ),
        Shape.ITEMS,
        "topic partition current target lag_after",
    ),
    CommandRow(
        "group delete",
        f"DELETE {CLUSTER}/groups/{{group}}",
        "Delete a group that has no members, with all that it committed.",
        (wake(),),
        Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

COMMANDS = (*ACLS, *CREDENTIALS, *QUOTAS, *GROUPS)
