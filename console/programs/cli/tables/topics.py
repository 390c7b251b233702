"""Commands for topics, deleted topics, orphaned topics and records."""

from __future__ import annotations

from typing import Any

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field, Kind
from console.programs.cli.tables.shorthand import (
    choice,
    flag,
    integer,
    listed,
    moment,
    name,
    pairs,
    text,
    validate_only,
    wake,
)

ABOUT = {
    "topic": "Topics of a cluster.",
    "deleted-topic": "Topics that were deleted and can be restored.",
    "orphaned-topic": "Topics on storage that the cluster does not know, as after a restore.",
    "message": "Records, one page at a time. `freshet consume` reads on and on.",
}
TOPICS = "/clusters/{cluster_id}/topics"
DELETED = "/clusters/{cluster_id}/deleted-topics"
ORPHANED = "/clusters/{cluster_id}/orphaned-topics"
COLUMNS = "name partitions configs created_at"


def _unset_configs(texts: list[str]) -> dict[str, Any]:
    return dict.fromkeys(texts)


def _records_before(texts: list[str]) -> list[dict[str, int]]:
    """Returns the API's items for texts like `0:1500` or `0:end`. Raises `ValueError`."""
    items = []
    for value in texts:
        partition, _, offset = value.partition(":")
        try:
            before = -1 if offset == "end" else int(offset)
            items.append({"partition": int(partition), "before_offset": before})
        except ValueError:
            message = f"--before {value}: write it like 0:1500, or 0:end for all of partition 0."
            raise ValueError(message) from None
    return items


COMMANDS = (
    CommandRow(
        "topic list",
        f"GET {TOPICS}",
        "A cluster's topics. It need not be awake.",
        (
            text("name_contains", "Only names with this in them.", query=True, option="contains"),
            flag("internal", "Also those that Kafka keeps for itself.", query=True),
            choice("view", "`full`: with all configs.", ("basic", "full"), query=True),
        ),
        Shape.PAGES,
        COLUMNS,
    ),
    CommandRow(
        "topic create",
        f"POST {TOPICS}",
        "Create a topic; brokers serve it when this returns.",
        (
            name(),
            integer("partitions", "How many; without it, the cluster's default."),
            integer("replication_factor", "1 to 3, only reported; storage is durable."),
            pairs("configs", "A config, such as retention.ms=86400000.", "config"),
            validate_only(),
        ),
    ),
    CommandRow(
        "topic create-many",
        f"POST {TOPICS}",
        "Create the topics of a JSON file, all or none: a list of "
        "`{name, partitions, replication_factor, configs}`.",
        (
            Field(
                "items",
                "The file; `-` is the standard input.",
                Kind.FILE,
                required=True,
                option="file",
            ),
            validate_only(),
        ),
        Shape.ITEMS,
        COLUMNS,
    ),
    CommandRow("topic describe", f"GET {TOPICS}/{{name}}", "A topic with its configs."),
    CommandRow(
        "topic update",
        f"PATCH {TOPICS}/{{name}}",
        "Change a topic's configs. What is not given stays.",
        (
            pairs("configs", "A config, such as retention.ms=86400000.", "config"),
            listed(
                "configs", "A config that goes back to its default.", "unset", parse=_unset_configs
            ),
            validate_only(),
        ),
    ),
    CommandRow(
        "topic partitions",
        f"GET {TOPICS}/{{name}}/partitions",
        "A topic's partitions, which broker leads each, and where damage is known.",
        shape=Shape.PAGES,
        columns="partition leader leader_epoch damaged_first_offset",
    ),
    CommandRow(
        "topic add-partitions",
        f"POST {TOPICS}/{{name}}/partitions",
        "Give a topic more partitions. It cannot have fewer again.",
        (integer("count", "How many it shall have.", required=True), validate_only()),
    ),
    CommandRow(
        "topic delete-records",
        f"POST {TOPICS}/{{name}}:delete-records",
        "Delete the oldest records of partitions, for good.",
        (
            listed(
                "partitions",
                "PARTITION:OFFSET: records before it go; PARTITION:end: all.",
                "before",
                required=True,
                parse=_records_before,
            ),
            wake(),
            validate_only(),
        ),
        Shape.ITEMS,
        "partition low_watermark deleted_offsets",
        confirm=Confirm.YES,
    ),
    CommandRow(
        "topic skip-damaged",
        f"POST {TOPICS}/{{name}}:skip-damaged",
        "Say what deleting a partition's records up to a damaged batch would take with it; with "
        "--confirm, delete them for good.",
        (
            integer("partition", "The partition of the batch.", required=True),
            integer("first_offset", "Where the batch begins.", option="offset", required=True),
            flag("confirm", "Delete the batch and the `records_before` it."),
            wake(),
        ),
    ),
    CommandRow(
        "topic delete",
        f"DELETE {TOPICS}/{{name}}",
        "Delete a topic. It can be restored for seven days: freshet deleted-topic undelete.",
        (validate_only(),),
        Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "deleted-topic list",
        f"GET {DELETED}",
        "Deleted topics that can be restored.",
        shape=Shape.PAGES,
        columns="name id partitions deleted_at restorable_until",
    ),
    CommandRow("deleted-topic describe", f"GET {DELETED}/{{topic}}", "A deleted topic."),
    CommandRow(
        "deleted-topic undelete",
        f"POST {DELETED}/{{topic}}:undelete",
        "Restore a deleted topic with its records.",
        (text("name", "Another name, where its own was taken."), validate_only()),
    ),
    CommandRow(
        "deleted-topic purge",
        f"DELETE {DELETED}/{{topic}}",
        "Delete a deleted topic's records now, for good.",
        shape=Shape.NOTHING,
        confirm=Confirm.NAME,
    ),
    CommandRow(
        "orphaned-topic list",
        f"GET {ORPHANED}",
        "Topics on storage that the cluster does not know.",
        shape=Shape.PAGES,
        columns="id name partitions found_at",
    ),
    CommandRow(
        "orphaned-topic attach",
        f"POST {ORPHANED}/{{topic}}:attach",
        "Make an orphaned topic one of the cluster's again.",
        (text("name", "A name, where its own is unknown or was taken."), validate_only()),
    ),
    CommandRow(
        "message list",
        f"GET {TOPICS}/{{name}}/messages",
        "A topic's records: the newest, or from somewhere on. Commits nothing, joins no group.",
        (
            choice(
                "from",
                "Where to begin. Default: newest.",
                ("newest", "oldest", "offset", "timestamp"),
                query=True,
            ),
            integer("offset", "With --from offset.", query=True),
            moment("timestamp", "With --from timestamp.", query=True),
            integer("partition", "Only of this partition.", query=True),
            text(
                "filter",
                "A text in key, value or headers, or an expression such as 'value.total > 100'.",
                query=True,
            ),
            integer("scan_bytes_max", "Read so many bytes for a page at most.", query=True),
            integer("limit", "Show so many at most. Default: 50.", query=True),
            text("cursor", "Go on where `next_cursor` of the page before says.", query=True),
            flag(
                "whole",
                "All bytes of one record. With --from offset, --partition and --limit 1.",
                query=True,
            ),
            wake(),
        ),
        Shape.ITEMS,
        "partition offset timestamp:timestamp_ms key:key.text value:value.text",
    ),
)
