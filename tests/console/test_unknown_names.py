"""What an operation does not take is refused by its name: fields of bodies, and parameters."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from rest_framework import serializers

from console.base.common import rates
from console.base.common.api import unknown
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.test_openapi import FILE
from tests.console.walk.calls import call_route, client_of
from tests.console.walk.tables import ROUTES

DOCUMENT = json.loads(FILE.read_text())
API_ROUTES = [route for route in ROUTES if route.path.startswith("/api/v1/")]
# What others sign: its bodies are none of this interface.
RAW = {"POST /api/v1/webhooks/stripe"}
# What asks for a session before it looks at the body, and is open to everybody otherwise.
PERSONS = {"PATCH /api/v1/session"}
# No field and no parameter has this name, nor one like it.
STRANGE = "zzyzx"


class Part(serializers.Serializer[Any]):
    size_bytes = serializers.IntegerField()


class Whole(serializers.Serializer[Any]):
    name = serializers.CharField()
    retention_ms = serializers.IntegerField()
    generation = serializers.IntegerField(read_only=True)
    part = Part()
    parts = Part(many=True)
    named_parts = serializers.DictField(child=Part())
    configs = serializers.DictField(child=serializers.CharField())


def errors_of(body, shown=()):
    errors = unknown.unknown_fields(Whole(), body, shown=lambda: frozenset(shown))
    return [(error.pointer, error.code, error.detail) for error in errors]


def test_known_fields_are_no_error():
    part = {"size_bytes": 1}
    body = {"name": "a", "part": part, "parts": [part], "named_parts": {"any": part}}
    assert errors_of({**body, "configs": {"any": "thing"}}) == []


def test_a_value_of_another_type_is_left_to_the_serializer():
    body: Any
    for body in ([], None, "text", 7, {"part": [1], "parts": {"size": 1}, "named_parts": [{}]}):
        assert errors_of(body) == []


def test_objects_within_the_body_are_searched():
    strange = {"size_bytes": 1, STRANGE: 1}
    body = {"part": strange, "parts": [{}, strange], "named_parts": {"a/b": strange}}
    assert [pointer for pointer, code, _ in errors_of(body) if code == "unknown_field"] == [
        f"/part/{STRANGE}",
        f"/parts/1/{STRANGE}",
        f"/named_parts/a~1b/{STRANGE}",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nam", "name"),
        ("retention", "retention_ms"),
        ("retentionMs", "retention_ms"),
        ("retention-ms", "retention_ms"),
        ("RETENTION_MS", "retention_ms"),
    ],
)
def test_the_nearest_known_name_is_suggested(name, meant):
    [(pointer, code, detail)] = errors_of({name: 1})
    assert (pointer, code) == (f"/{name}", "unknown_field")
    assert detail == f"This request takes no field `{name}`. Did you mean `{meant}`?"


def test_nothing_is_suggested_where_nothing_is_near():
    [(_, _, detail)] = errors_of({STRANGE: 1})
    assert detail == f"This request takes no field `{STRANGE}`."


def test_a_field_of_answers_is_not_called_unknown():
    expected = "`{}` is a field of answers, which this request does not take."
    for name in ("generation", "created_at"):
        [error] = errors_of({name: 1}, shown={"created_at", "name"})
        assert error == (f"/{name}", "read_only", expected.format(name))


def test_several_items_show_the_fields_of_answers_too():
    class Several(serializers.Serializer[Any]):
        items = Part(many=True)
        parts = Part(many=True)

    item = {"size_bytes": 1, "id": "a"}
    body = {"items": [item], "parts": [item]}
    errors = unknown.unknown_fields(Several(), body, shown=lambda: frozenset({"id"}))
    assert [(error.pointer, error.code) for error in errors] == [
        ("/items/0/id", "read_only"),
        ("/parts/0/id", "unknown_field"),
    ]


def test_an_answer_is_short_whatever_is_sent():
    long = "n" * 100_000
    errors = errors_of({long: 1, **{f"{STRANGE}{number}": 1 for number in range(1000)}})
    assert len(errors) == unknown.ERRORS_MAX
    assert sum(len(text) for error in errors for text in error) < 10_000
    assert "Did you mean" not in errors[0][2]


def test_a_budget_in_another_currency_is_refused(api):
    body = {"name": "Team", "amount_minor": 5000, "currency": "EUR", "treshold": [50]}
    document = assert_problem(api().post("/budgets", body), 422, "validation_failed")
    assert [(error["pointer"], error["code"]) for error in document["errors"]] == [
        ("/currency", "read_only"),
        ("/treshold", "unknown_field"),
    ]
    assert "Did you mean `thresholds`?" in document["errors"][1]["detail"]
    assert api().get("/budgets").json()["items"] == []


def test_unknown_fields_are_named_beside_what_else_is_wrong(api):
    document = assert_problem(api().post("/budgets", {"nam": "Team"}), 422, "validation_failed")
    assert {(error["pointer"], error["code"]) for error in document["errors"]} == {
        ("/nam", "unknown_field"),
        ("/name", "required"),
        ("/amount_minor", "required"),
    }


def test_what_a_read_gave_cannot_be_sent_back_whole(api):
    created = api().post("/projects", {"name": "Team"}).json()
    path = f"/projects/{created['id']}"
    document = assert_problem(api().patch(path, {**created, "name": "B"}), 422, "validation_failed")
    assert {error["code"] for error in document["errors"]} == {"read_only"}
    names = {error["pointer"].removeprefix("/") for error in document["errors"]}
    assert names >= {"id", "created_at"}
    rest = {name: value for name, value in created.items() if name not in names}
    assert api().patch(path, {**rest, "name": "B"}).json()["name"] == "B"


def test_a_deletion_that_cannot_be_validated_alone_does_not_happen(api):
    created = api().post("/projects", {"name": "Team"}).json()
    path = f"/projects/{created['id']}"
    response = api().delete(path, query={"validate_only": "true"})
    document = assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "?validate_only"
    assert api().get(path).status_code == 200


def test_a_body_where_none_is_taken_must_be_empty(tenant):
    client = ApiClient(tenant.key)
    path = f"/projects/{client.post('/projects', {'name': 'Team'}).json()['id']}"
    document = assert_problem(client.delete(path, body=["x"]), 422, "validation_failed")
    assert document["errors"] == [
        {"pointer": "/", "code": "unknown_field", "detail": "This operation takes no body."}
    ]
    assert client.delete(path, body={}).status_code == 204


@dataclass(frozen=True)
class Place:
    """A place in the body of an operation: a pointer to an object, and the name of its schema."""

    pointer: str
    schema: str


def operation_of(route) -> dict[str, Any]:
    """What the OpenAPI file says of a route; nothing of what is not described there."""
    path = route.path.replace("<", "{").replace(">", "}")
    item: dict[str, Any] = DOCUMENT["paths"].get(path, {})
    operation: dict[str, Any] = item.get(route.method.lower(), {})
    return operation


def content_of(route) -> dict[str, Any]:
    body = operation_of(route).get("requestBody", {"content": {}})
    content: dict[str, Any] = body["content"].get("application/json", {})
    return content


def places_in(value: Any, schema: Mapping[str, Any], pointer: str = "") -> Iterator[Place]:
    """Yields the objects in a body whose fields its schema names."""
    name = ""
    while "$ref" in schema or "allOf" in schema:
        name = (schema.get("$ref") or schema["allOf"][0]["$ref"]).rsplit("/", 1)[1]
        schema = DOCUMENT["components"]["schemas"][name]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from places_in(item, schema.get("items", {}), f"{pointer}/{index}")
    elif isinstance(value, dict) and "properties" in schema:
        yield Place(pointer, name)
        for member, inner in value.items():
            inner_schema = schema["properties"].get(member, {})
            yield from places_in(inner, inner_schema, f"{pointer}/{member}")


def bodies_of(route) -> list[Any]:
    """The bodies that a route is tried with: its own, and the examples of the OpenAPI file."""
    examples = content_of(route).get("examples", {}).values()
    own = [] if route.body is None else [route.body]
    return [*own, *(example["value"] for example in examples)] or [{}]


def spoiled_bodies(route) -> Iterator[tuple[Place, Any]]:
    """Yields bodies with a strange field in one of their objects: each kind of object once."""
    schema = content_of(route).get("schema", {"properties": {}})
    tried = set()
    for body in bodies_of(route):
        for place in places_in(body, schema):
            if place.schema in tried and place.pointer:
                continue
            tried.add(place.schema)
            spoiled = copy.deepcopy(dict(body))
            inner: Any = spoiled
            for step in place.pointer.split("/")[1:]:
                inner = inner[int(step) if isinstance(inner, list) else step]
            inner[STRANGE] = 1
            yield place, spoiled


def unknown_of(response) -> set[tuple[str, str]]:
    """Pointers and codes of the names that an answer calls unknown."""
    document = {} if response.status_code != 422 else response.json()
    return {
        (error["pointer"], error["code"])
        for error in document.get("errors", [])
        if error["code"] in {"unknown_field", "unknown_parameter", "read_only"}
    }


@pytest.mark.parametrize("route", API_ROUTES, ids=lambda route: route.name)
def test_every_operation_refuses_names_that_it_does_not_take(route, tenant):
    client = signed_in(tenant.owner) if route.name in PERSONS else client_of(route, tenant)
    parameters = route.parameters(tenant)
    with_query = replace(route, query={**route.query, STRANGE: "1"})
    rates.forget_rates()
    refused = call_route(with_query, client, parameters)
    assert unknown_of(refused) == {(f"?{STRANGE}", "unknown_parameter")}, refused.content
    described = [
        parameter["name"]
        for parameter in operation_of(route).get("parameters", [])
        if parameter["in"] == "query"
    ]
    if described:
        known = replace(route, query=dict.fromkeys(described, "?"))
        answered = call_route(known, client, parameters)
        assert unknown_of(answered) == set(), answered.content
    if route.method != "GET" and route.name not in RAW:
        for place, body in spoiled_bodies(route):
            refused = call_route(replace(route, body=body), client, parameters)
            expected = {(f"{place.pointer}/{STRANGE}", "unknown_field")}
            assert unknown_of(refused) == expected, refused.content


def test_every_object_in_a_body_is_tried():
    tried = {place.schema for route in API_ROUTES for place, _ in spoiled_bodies(route)}
    tried -= {""}  # where no body is taken
    described = {
        name
        for name, schema in DOCUMENT["components"]["schemas"].items()
        if schema.get("additionalProperties") is False
    }
    assert described == tried
    # A resource, whose answers may grow.
    assert "LimitRequest" not in described
