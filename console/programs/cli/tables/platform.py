"""Limits, incidents, the audit log, metrics."""

from __future__ import annotations

from console.programs.cli.command import Command, Confirm, Shape
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
)

ABOUT = {
    "limit": "What is limited, and how much of it is used.",
    "limit-request": "Asking for more.",
    "incident": "What is wrong with the service or a cluster.",
    "alert": "Mails when a figure of a cluster stays beyond a threshold.",
    "audit": "Who changed what.",
}

KINDS = (
    "group_lag",
    "group_lag_seconds",
    "storage_bytes",
    "storage_growth_bytes",
    "connections",
)


def _settings() -> tuple[Field, ...]:
    return (
        text("group", "Of kinds of groups; empty: whichever is worst."),
        integer("for_s", "Seconds that it lasts before it fires, and ends.", option="for"),
        listed("emails", "A member who gets mails; they replace all that there are.", "email"),
        cleared("emails", "Mails go to those who manage the organisation.", "no-emails", list),
    )


def _looked_for() -> tuple[Field, ...]:
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
    Command(
        "limit list",
        "GET /limits",
        "Limits, how much is used, and what happens at each.",
        (reference("cluster_id", "Also those of this cluster.", "/clusters", query=True),),
        Shape.PAGES,
        "name scope limit used unit raisable effect",
    ),
    Command(
        "limit-request list",
        "GET /limit-requests",
        "Requests, newest first.",
        shape=Shape.PAGES,
        columns="id limit cluster_id wanted state granted answer created_at",
    ),
    Command(
        "limit-request create",
        "POST /limit-requests",
        "Ask for more.",
        (
            Field("limit", "Which of `freshet limit list`.", argument=True),
            integer("wanted", "How much.", required=True),
            text("reason", "What for.", required=True),
            reference("cluster_id", "For this cluster alone.", "/clusters"),
        ),
    ),
    Command("limit-request describe", "GET /limit-requests/{id}", "A request, and its answer."),
    Command(
        "alert list",
        "GET /alerts",
        "Alerts, and how they stand.",
        (reference("cluster_id", "Only those of this cluster.", "/clusters", query=True),),
        Shape.PAGES,
        "name id cluster_id kind group threshold state value subject",
    ),
    Command(
        "alert create",
        "POST /alerts",
        "Set an alert.",
        (
            name(),
            reference("cluster_id", "Of this cluster.", "/clusters", required=True),
            choice("kind", "Which figure.", KINDS, required=True),
            integer("threshold", "It fires above.", required=True),
            *_settings(),
        ),
    ),
    Command("alert describe", "GET /alerts/{id}", "An alert, and how it stands."),
    Command(
        "alert update",
        "PATCH /alerts/{id}",
        "Change an alert. What is not given stays.",
        (
            text("name", "Another name."),
            integer("threshold", "It fires above."),
            *_settings(),
        ),
    ),
    Command(
        "alert delete",
        "DELETE /alerts/{id}",
        "Remove an alert.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    Command(
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
    Command("incident describe", "GET /incidents/{id}", "An incident, and how it went."),
    Command(
        "audit list",
        "GET /audit-log",
        "Who changed what, newest first.",
        _looked_for(),
        Shape.PAGES,
        "created_at action actor:actor.name kind:actor.kind target:target.id source address",
        items_max=50,
    ),
    Command(
        "audit export",
        "GET /audit-log/export",
        "The audit log as a file.",
        (
            *_looked_for(),
            choice("format", "Default: jsonl.", ("jsonl", "csv"), query=True),
        ),
        Shape.FILE,
        file="audit-log",
    ),
    Command(
        "metrics", "GET /metrics", "Metrics of all clusters, as OpenMetrics text.", shape=Shape.TEXT
    ),
)
