"""Commands for clusters, operations and regions."""

from __future__ import annotations

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field
from console.programs.cli.tables.schedules import schedules_of
from console.programs.cli.tables.shorthand import (
    boolean,
    cleared,
    integer,
    labels,
    listed,
    name,
    reference,
    text,
    validate_only,
)

ABOUT = {
    "cluster": "Kafka clusters.",
    "operation": "Operations: changes that take a while.",
    "region": "Where clusters can be.",
}


def _cluster_fields() -> tuple[Field, ...]:
    """Returns the fields of a cluster that can be set when it is made and later."""
    return (
        reference("project_id", "The project that it is in.", "/projects"),
        *labels(),
        integer("spec.idle_timeout_s", "Sleep after so many seconds without a client."),
        *_scale_fields(),
        boolean("deletion_protection", "Whether deleting it is refused."),
    )


def _scale_fields() -> tuple[Field, ...]:
    return (
        integer("spec.scale.min", "0, or 1 for never to sleep.", option="min"),
        integer("spec.scale.max", "Brokers when awake, up to the limit `brokers`.", option="max"),
        listed(
            "spec.schedules",
            "When it does not sleep, such as 'mon-fri 07:00-19:00 Europe/Zurich' or 'daily "
            "22:00-02:00' (UTC); they replace all that there are.",
            "schedule",
            parse=schedules_of,
        ),
        cleared("spec.schedules", "Without schedules.", "no-schedules", list),
    )


def _operation_row(word: str, about: str, *fields: Field) -> CommandRow:
    return CommandRow(
        f"cluster {word}", f"POST /clusters/{{id}}:{word}", about, fields, Shape.OPERATION
    )


COMMANDS = (
    CommandRow(
        "cluster list",
        "GET /clusters",
        "All clusters, also those that can still be restored.",
        (reference("project_id", "Only of this project.", "/projects", query=True),),
        Shape.PAGES,
        "name id phase:status.phase region bootstrap_servers created_at deleted_at",
    ),
    CommandRow(
        "cluster create",
        "POST /clusters",
        "Create a cluster. Without --wait it goes on by itself.",
        (
            name(),
            text("region", "One of `freshet region list`."),
            *_cluster_fields(),
            validate_only(),
        ),
        Shape.OPERATION,
    ),
    CommandRow("cluster describe", "GET /clusters/{id}", "A cluster, and how to connect to it."),
    CommandRow(
        "cluster update",
        "PATCH /clusters/{id}",
        "Change a cluster. What is not given stays.",
        (text("name", "Another name."), *_cluster_fields(), validate_only()),
    ),
    CommandRow(
        "cluster scale",
        "PATCH /clusters/{id}",
        "Set how many brokers a cluster has when awake, and when it does not sleep.",
        (*_scale_fields(), validate_only()),
    ),
    _operation_row("wake", "Start its brokers, if it sleeps.", validate_only()),
    _operation_row("sleep", "Stop its brokers, until a client connects.", validate_only()),
    _operation_row(
        "suspend", "Stop it, and let no client in until it is resumed.", validate_only()
    ),
    _operation_row("resume", "End a suspension.", validate_only()),
    CommandRow(
        "cluster delete",
        "DELETE /clusters/{id}",
        "Delete a cluster. It can be restored for seven days.",
        (validate_only(),),
        Shape.OPERATION,
        confirm=Confirm.NAME,
    ),
    CommandRow(
        "cluster undelete",
        "POST /clusters/{id}:undelete",
        "Restore a deleted cluster.",
        (text("name", "Another name, where its own was taken."), validate_only()),
        Shape.OPERATION,
        over=True,
    ),
    CommandRow(
        "cluster first-steps",
        "GET /clusters/{cluster_id}/first-steps",
        "Whether a cluster has a credential, was produced to, and consumed from.",
    ),
    CommandRow(
        "cluster metrics",
        "GET /clusters/{cluster_id}/metrics",
        "A cluster's metrics, as OpenMetrics text.",
        shape=Shape.TEXT,
    ),
    CommandRow(
        "cluster unbilled-traffic",
        "GET /clusters/{cluster_id}/unbilled-traffic",
        "How much of a cluster's traffic is not billed, and who takes it.",
    ),
    CommandRow(
        "operation list",
        "GET /operations",
        "Operations, newest first.",
        (text("resource_id", "Only of this id, such as a cluster's.", query=True, option="of"),),
        Shape.PAGES,
        "id type resource_id state progress request_id created_at finished_at",
        items_max=50,
    ),
    CommandRow("operation describe", "GET /operations/{id}", "An operation, and why it failed."),
    CommandRow(
        "region list",
        "GET /regions",
        "Regions that clusters can be created in.",
        shape=Shape.PAGES,
        columns="id name",
    ),
)
