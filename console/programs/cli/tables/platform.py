"""Commands for limits, alerts, incidents, the audit log and metrics."""

from __future__ import annotations

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field
from console.programs.cli.tables.shorthand import (
    choice,
    cleared,
    integer,
    listed,
    name,
    reference,
    since,
    text,
    until,
    validate_only,
)

ABOUT = {
    "limit": "Limits, and how much of them is used.",
    "limit-request": "Requests for higher limits.",
    "incident": "Faults of the service or of a cluster.",
    "alert": "Mails when a figure of a cluster stays beyond a threshold.",
    "audit": "Who changed what, and who read records.",
}

KINDS = (
    "group_lag",
    "group_lag_seconds",
    "storage_bytes",
    "storage_growth_bytes",
    "connections",
)


def _alert_fields() -> tuple[Field, ...]:
    return (
        text("group", "For alerts of a lag: the group; empty: the group that is furthest behind."),
        integer(
            "for_s", "Seconds that the figure lasts before the alert fires or ends.", option="for"
        ),
        listed("emails", "A member who gets mails; they replace all that there are.", "email"),
        cleared("emails", "Mails go to those who manage the organization.", "no-emails", list),
    )


def _audit_filters() -> tuple[Field, ...]:
    return (
        text("actor", "Id of a key or a user; of a Kafka client, its principal.", query=True),
        text("action", "Such as cluster.create.", query=True),
        text("target_type", "Such as cluster.", query=True),
        text(
            "target_id", "An id; of what has none CLUSTER_ID/NAME.", query=True, option="target-id"
        ),
        since("At or after this time."),
        until("Before this time."),
    )


COMMANDS = (
    CommandRow(
        "limit list",
        "GET /limits",
        "Limits, how much is used, and what happens at each.",
        (reference("cluster_id", "Also those of this cluster.", "/clusters", query=True),),
        Shape.PAGES,
        "name scope limit used unit raisable effect",
    ),
    CommandRow(
        "limit-request list",
        "GET /limit-requests",
        "Requests, newest first.",
        shape=Shape.PAGES,
        columns="id limit cluster_id wanted state granted answer created_at",
    ),
    CommandRow(
        "limit-request create",
        "POST /limit-requests",
        "Ask for a higher limit.",
        (
            Field("limit", "Which of `freshet limit list`.", argument=True),
            integer("wanted", "How much.", required=True),
            text("reason", "What for.", required=True),
            reference("cluster_id", "For this cluster alone.", "/clusters"),
            validate_only(),
        ),
    ),
    CommandRow("limit-request describe", "GET /limit-requests/{id}", "A request, and its answer."),
    CommandRow(
        "alert list",
        "GET /alerts",
        "List alerts with their states.",
        (reference("cluster_id", "Only those of this cluster.", "/clusters", query=True),),
        Shape.PAGES,
        "name id cluster_id kind group threshold state since value subject",
    ),
    CommandRow(
        "alert create",
        "POST /alerts",
        "Set an alert.",
        (
            name(),
            reference("cluster_id", "Of this cluster.", "/clusters", required=True),
            choice("kind", "Which figure.", KINDS, required=True),
            integer("threshold", "It fires above.", required=True),
            *_alert_fields(),
            validate_only(),
        ),
    ),
    CommandRow("alert describe", "GET /alerts/{id}", "Show an alert with its state."),
    CommandRow(
        "alert update",
        "PATCH /alerts/{id}",
        "Change an alert. What is not given stays.",
        (
            text("name", "Another name."),
            integer("threshold", "It fires above."),
            *_alert_fields(),
            validate_only(),
        ),
    ),
    CommandRow(
        "alert delete",
        "DELETE /alerts/{id}",
        "Remove an alert.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "incident list",
        "GET /incidents",
        "Incidents, newest first.",
        (
            reference("cluster_id", "Only of this cluster.", "/clusters", query=True),
            choice("state", "Only those.", ("open", "closed"), query=True),
        ),
        Shape.PAGES,
        "id state kind cluster_id title opened_at closed_at",
        items_max=50,
    ),
    CommandRow("incident describe", "GET /incidents/{id}", "Show an incident with its updates."),
    CommandRow(
        "audit list",
        "GET /audit-log",
        "Who changed what and who read records, newest first.",
        _audit_filters(),
        Shape.PAGES,
        "created_at action actor:actor.name kind:actor.kind target:target.id source address",
        items_max=50,
    ),
    CommandRow(
        "audit export",
        "GET /audit-log/export",
        "The audit log as a file.",
        (
            *_audit_filters(),
            choice("format", "Default: jsonl.", ("jsonl", "csv"), query=True),
        ),
        Shape.FILE,
        file="audit-log",
    ),
    CommandRow(
        "metrics", "GET /metrics", "Metrics of all clusters, as OpenMetrics text.", shape=Shape.TEXT
    ),
)
