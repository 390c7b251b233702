"""Every route of the REST interface has a command that takes all that the route does."""

import json
from pathlib import Path

import click

from console.programs.cli import app
from console.programs.cli.command import Shape, build_command
from console.programs.cli.fields import Kind
from console.programs.cli.tables import ALL

FILE = Path(__file__).parents[2] / "docs/reference/openapi.json"
DOCUMENT = json.loads(FILE.read_text())
METHODS = {"get", "post", "put", "patch", "delete"}
ROUTES = {
    f"{method.upper()} {path.removeprefix('/api/v1')}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method in METHODS
}

# Served by commands that are no row of a table.
BY_HAND = {
    "POST /signup": "signup",
    "POST /session": "login",
    "GET /session": "login",
    "PATCH /session": "login",
    "DELETE /session": "login",
    "GET /operations/{id}": "operation wait",
    "POST /clusters/{cluster_id}/topics/{name}/messages": "produce",
    "GET /clusters/{cluster_id}/topics/{name}/messages/stream": "consume",
}
# The schema of an answer to a validation alone, which no command asks for.
VALIDATED = "#/components/schemas/Validated"
PERSON = "of somebody who is signed in to the console, which an API key is not"
LINK = "the mail's link leads to the console, which asks for what it needs"
STAFF = "for the people who run the service, in the console's staff area"
PAGE = "leads a browser to a page of Stripe, and from there back to the console"
FOLDER = "a folder of files on the machine that runs the service for itself"
NO_COMMAND = {
    "POST /organizations/current:close": PERSON,
    "POST /session/password": PERSON,
    "POST /session/totp": PERSON,
    "DELETE /session/totp": PERSON,
    "POST /session/totp/confirm": PERSON,
    "POST /session/recovery-codes": PERSON,
    "GET /sessions": PERSON,
    "DELETE /sessions/{id}": PERSON,
    "POST /sessions:end-others": PERSON,
    "POST /invitations/accept": LINK,
    "POST /password-reset": LINK,
    "POST /password-reset/confirm": LINK,
    "POST /signup/verification": LINK,
    "POST /signup/verify": LINK,
    "GET /local-mail": FOLDER,
    "POST /local-mail": FOLDER,
    "POST /session/link": LINK,
    "GET /staff/cells": STAFF,
    "GET /staff/clusters": STAFF,
    "GET /staff/break-glass": STAFF,
    "POST /staff/clusters/{id}:break-glass": STAFF,
    "GET /staff/incidents": STAFF,
    "GET /staff/invoice-months": STAFF,
    "GET /staff/limit-requests": STAFF,
    "GET /staff/missing-invoices": STAFF,
    "POST /payment-method/setup": PAGE,
    "POST /payment-method/portal": PAGE,
    "GET /staff/payment-attempts": STAFF,
    "GET /staff/reconciliation": STAFF,
    "GET /staff/reconciliation/runs": STAFF,
    "GET /staff/receivables": STAFF,
    "GET /staff/payments": STAFF,
    "POST /staff/payments": STAFF,
    "POST /staff/refunds": STAFF,
    "POST /staff/credits": STAFF,
    "POST /staff/write-offs": STAFF,
    "POST /staff/limit-requests/{id}:grant": STAFF,
    "POST /staff/limit-requests/{id}:refuse": STAFF,
    "GET /staff/operations": STAFF,
}
# Parameters that commands do not take, since they read all pages by themselves.
PAGING = {"cursor", "limit"}
# Members of bodies that another command of the same route sends, or that repeat another member.
ELSEWHERE = {
    "topic create": {"items"},
    "topic create-many": {"name", "partitions", "replication_factor", "configs"},
    "acl create": {"items"},
    "acl delete-matching": {
        *("principal", "resource_type", "resource_name", "pattern_type", "operation"),
        *("permission", "host"),
    },
    "cluster create": {"idle_timeout_s"},
    "cluster delete": {"name"},
    "cluster update": {"idle_timeout_s"},
    "cluster scale": {
        *("idle_timeout_s", "name", "labels", "project_id", "deletion_protection"),
        "spec.idle_timeout_s",
    },
}


def each_row(check):
    """A test that makes the check of every row: hundreds of tests would take longer than they."""

    def test():
        complaints = []
        for row in ALL:
            try:
                check(row)
            except AssertionError as error:
                complaints.append(f"{row.words}: {error}")
        assert complaints == []

    test.__name__ = check.__name__
    return test


def schema_of(reference):
    """A schema, followed to where it is described."""
    while reference and ("$ref" in reference or "allOf" in reference):
        named = reference.get("$ref") or reference["allOf"][0]["$ref"]
        reference = DOCUMENT["components"]["schemas"][named.rsplit("/", 1)[1]]
    return reference


def members(schema, prefix=""):
    """Names of a body's members with their schemas; of objects with known members, theirs."""
    described: dict[str, dict[str, object]] = {}
    for name, member in schema.get("properties", {}).items():
        inner = schema_of(member)
        if inner.get("properties"):
            described |= members(inner, f"{prefix}{name}.")
        else:
            described[prefix + name] = member
    return described


def body_members(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return members(schema_of(content["schema"])) if content else {}


def query_members(operation):
    return (
        {
            parameter["name"]: parameter["schema"]
            for parameter in operation["parameters"]
            if parameter["in"] == "query"
        }
        if "parameters" in operation
        else {}
    )


def test_every_route_has_a_command_or_a_reason():
    requests = {row.request for row in ALL}
    assert set(ROUTES) == requests | set(BY_HAND) | set(NO_COMMAND)
    assert not (requests | set(BY_HAND)) & set(NO_COMMAND)


def test_commands_by_hand_are_there():
    for words in BY_HAND.values():
        command: click.Command = app.build_root()
        for word in words.split():
            assert isinstance(command, click.Group)
            command = command.commands[word]


def test_names_of_commands_are_unique():
    words = [row.words for row in ALL]
    assert len(set(words)) == len(words)


@each_row
def test_a_command_takes_what_its_route_does(row):
    operation = ROUTES[row.request]
    query = query_members(operation)
    if row.shape is Shape.PAGES:
        assert set(query) >= PAGING
        query = {name: value for name, value in query.items() if name not in PAGING}
    if row.confirm == "name":
        assert query.pop("name")
    body = body_members(operation)
    if row.words == "operation describe":
        query.pop("wait")  # of `operation wait`
    assert {field.name for field in row.fields if field.query} == set(query)
    taken = {field.name for field in row.fields if not field.query}
    elsewhere = ELSEWHERE.get(row.words, set())
    assert taken | elsewhere == set(body)
    assert not taken & elsewhere
    for field in row.fields:
        assert_fits(field, (query if field.query else body)[field.name])


def assert_fits(field, schema):
    """The API's words for a choice, its type for a number."""
    described = schema_of(schema)
    options = described.get("oneOf") or [described]
    kinds = set()
    for option in options:
        # A whole number that no double holds is text.
        kind = "integer" if option.get("format") == "int64" else option.get("type", ())
        kinds |= {kind} if isinstance(kind, str) else set(kind)
    words = next((option["enum"] for option in options if "enum" in option), None)
    if field.kind is Kind.CHOICE:
        assert set(field.choices) == set(words or ()), field.name
    elif field.parse is None:
        assert words is None, f"{field.name} is one of {words}"
    expected = {
        Kind.INTEGER: "array" if field.multiple else "integer",
        Kind.NUMBER: "number",
        Kind.BOOLEAN: "boolean",
        Kind.PAIRS: "object",
        Kind.LIST: "array",
    }.get(field.kind)
    if expected and field.parse is None:
        assert expected in kinds, field.name
    if field.kind is Kind.FLAG and field.parse is None:
        assert kinds == {"boolean"}, field.name
    if field.kind is Kind.MOMENT:
        expected = "date" if field.parse else "date-time"
        assert described.get("format") == expected or field.name == "timestamp", field.name


@each_row
def test_a_command_needs_what_its_route_needs(row):
    operation = ROUTES[row.request]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    needed = set(schema_of(content["schema"]).get("required", [])) if content else set()
    given = {field.name for field in row.fields if field.required or field.argument}
    one_of = {"group reset-offsets": {"to"}}.get(row.words, set())
    assert needed - one_of <= given, row.words


@each_row
def test_the_answer_has_the_shape_that_is_shown(row):
    operation = ROUTES[row.request]
    answers = [
        response.get("content", {})
        for status, response in operation["responses"].items()
        if status[0] == "2" and VALIDATED not in json.dumps(response)
    ]
    [content] = answers
    if row.shape is Shape.NOTHING:
        assert not content
        return
    if row.shape in {Shape.TEXT, Shape.FILE}:
        assert "application/json" not in content
        return
    schema = schema_of(content["application/json"]["schema"])
    name = content["application/json"]["schema"].get("$ref", "").rsplit("/", 1)[-1]
    if row.words != "operation describe":
        assert (name == "Operation") == (row.shape is Shape.OPERATION)
    if row.shape in {Shape.PAGES, Shape.ITEMS}:
        # One or several: the command asks for several.
        several = [schema_of(variant) for variant in schema.get("oneOf", [schema])]
        schema = next(
            (variant for variant in several if "items" in variant["properties"]), several[0]
        )
        if "items" in schema["properties"]:
            schema = schema_of(schema["properties"]["items"]["items"])
        columns = [word.partition(":")[2] or word for word in row.columns.split()]
        for column in columns:
            assert column.split(".")[0] in schema["properties"], column
    else:
        assert not row.columns


def test_no_two_options_of_a_command_are_the_same():
    for row in ALL:
        command = build_command(row)
        options = [
            name for param in command.params for name in (*param.opts, *param.secondary_opts)
        ]
        assert len(set(options)) == len(options), row.words
