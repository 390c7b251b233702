"""Commands for usage, costs, budgets, invoices and billing details."""

from __future__ import annotations

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field, Kind
from console.programs.cli.tables.shorthand import (
    boolean,
    choice,
    cleared,
    integer,
    listed,
    moment,
    name,
    reference,
    since,
    text,
    until,
    validate_only,
)

ABOUT = {
    "usage": "Usage, in the rows that invoices are made from.",
    "cost": "What a month costs, and prices.",
    "budget": "What a month may cost, and what happens then.",
    "invoice": "Invoices and credit notes.",
    "billing-details": "Whom invoices are addressed to.",
    "payment": "What was paid, by what, and what is owed.",
}
METERS = (
    "ingress_bytes",
    "egress_bytes",
    "storage_byte_minutes",
    "partition_minutes",
    "broker_seconds",
)
ACTIONS = ("notify", "throttle", "suspend")


def _day_of(when: str) -> str:
    return when[:10]


def _threshold_field() -> Field:
    return Field(
        "thresholds",
        "A percentage of the amount at which a mail is sent; they replace 50, 80 and 100.",
        Kind.INTEGER,
        option="threshold",
        multiple=True,
    )


def _action_fields() -> tuple[Field, ...]:
    return (
        choice(
            "action",
            "When it is used up, clusters refuse produce and fetch (`suspend`) or slow them down.",
            ACTIONS,
        ),
        integer(
            "throttle_bytes_per_s",
            "With `throttle`: bytes a second of a cluster; 1048576 unless given.",
            option="throttle",
        ),
    )


COMMANDS = (
    CommandRow(
        "usage list",
        "GET /usage",
        "What was used, in windows of time.",
        (
            reference("cluster_id", "Only of this cluster.", "/clusters", query=True),
            since("Windows that begin at or after this time."),
            until("Windows that begin before it. Default: now."),
            choice(
                "granularity",
                "The length of a window. Default: day.",
                ("minute", "hour", "day", "month"),
                query=True,
            ),
            choice(
                "group_by",
                "Sums of rows. Default: none, the rows themselves.",
                ("none", "cluster", "topic", "principal", "meter"),
                query=True,
            ),
            choice("meter", "Only of this meter.", METERS, query=True),
            text("principal", "Only of this one, such as User:NAME.", query=True),
            text("topic_id", "Only of this topic: 32 hexadecimal digits.", query=True),
            boolean("billed", "Only what costs count, or only the rest.", query=True),
        ),
        Shape.PAGES,
        "window_start meter quantity unit cluster_id topic principal provisional id",
        items_max=200,
    ),
    CommandRow(
        "usage stored",
        "GET /usage/stored",
        "How many bytes topics hold now.",
        (
            reference("cluster_id", "Only of this cluster.", "/clusters", query=True),
            text("topic_id", "Only of this topic: 32 hexadecimal digits.", query=True),
        ),
    ),
    CommandRow("usage row", "GET /usage/rows/{id}", "A row, and the files that it was made from."),
    CommandRow(
        "usage reconciliations",
        "GET /usage/reconciliations",
        "List, for each day, whether the metered ingress equals the bytes in the log.",
        (
            reference("cluster_id", "Only of this cluster.", "/clusters", query=True),
            moment("from", "The first day.", query=True, parse=_day_of),
            moment("to", "The last day.", query=True, parse=_day_of),
        ),
        Shape.PAGES,
        "day cluster_id agreement metered_bytes logged_bytes unknown_bytes reason",
        items_max=200,
    ),
    CommandRow(
        "cost show",
        "GET /costs",
        "What a month costs so far, its forecast, and what it is for.",
        (text("month", "YYYY-MM. Default: the current one.", query=True),),
    ),
    CommandRow("cost prices", "GET /prices", "The prices of the current month."),
    CommandRow(
        "budget list",
        "GET /budgets",
        "List budgets with what is spent of them.",
        shape=Shape.PAGES,
        columns="name id amount_minor spent_minor currency action state thresholds",
    ),
    CommandRow(
        "budget create",
        "POST /budgets",
        "Set what a calendar month may cost, before taxes.",
        (
            name(),
            integer("amount_minor", "In minor units (cents).", required=True, option="amount"),
            _threshold_field(),
            *_action_fields(),
            validate_only(),
        ),
    ),
    CommandRow("budget describe", "GET /budgets/{id}", "A budget with its newest events."),
    CommandRow(
        "budget update",
        "PATCH /budgets/{id}",
        "Change a budget. What is not given stays.",
        (
            text("name", "Another name."),
            integer("amount_minor", "In minor units (cents).", option="amount"),
            _threshold_field(),
            *_action_fields(),
            validate_only(),
        ),
    ),
    CommandRow(
        "budget delete",
        "DELETE /budgets/{id}",
        "Remove a budget.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "invoice list",
        "GET /invoices",
        "Invoices and credit notes, newest first.",
        (text("month", "Only of this one, YYYY-MM.", query=True),),
        Shape.PAGES,
        "number id kind state month total_minor open_minor currency due_on issued_at",
    ),
    CommandRow("invoice describe", "GET /invoices/{id}", "An invoice with its lines."),
    CommandRow(
        "invoice pdf",
        "GET /invoices/{id}/pdf",
        "Save the document.",
        shape=Shape.FILE,
        file="*.pdf",
    ),
    CommandRow(
        "invoice evidence",
        "GET /invoices/{id}/evidence",
        "Save the rows that its lines are computed from, with the program that computes them.",
        shape=Shape.FILE,
        file="*-evidence.zip",
    ),
    CommandRow(
        "invoice pay",
        "POST /invoices/{id}/pay",
        "Charge the card with what is open of an invoice, now.",
        (boolean("with_older", "Together with every older invoice that is open."),),
    ),
    CommandRow(
        "payment list",
        "GET /payments",
        "Money that came in, newest first.",
        shape=Shape.PAGES,
        columns="received_at id method amount_minor currency credit_minor refunded_minor",
    ),
    CommandRow("payment owed", "GET /account", "What is owed, and what happens next."),
    CommandRow("payment method", "GET /payment-method", "The card that is charged."),
    CommandRow(
        "payment advance",
        "POST /payment-method/advance",
        "Charge the card in advance with what was used so far.",
    ),
    CommandRow("billing-details describe", "GET /billing-details", "Name, address, VAT number."),
    CommandRow(
        "billing-details update",
        "PATCH /billing-details",
        "Change whom invoices are addressed to, from the next one on.",
        (
            text("legal_name", "Empty: the organization's name."),
            listed(
                "address", "A line of the address; they replace all that there are.", "address-line"
            ),
            cleared("address", "Without an address.", "no-address", list),
            text("country", "Two letters (ISO 3166-1)."),
            text("vat_id", "With its country's letters.", option="vat-id"),
            text("email", "Where invoices are mailed."),
        ),
    ),
)
