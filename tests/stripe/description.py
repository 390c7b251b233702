"""Stripe's OpenAPI file as JSON Schema: what an answer must be, what an endpoint takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from console.programs.stripe_fake.endpoints import Endpoint
from console.programs.stripe_fake.forms import Fields, Parameter

Json = dict[str, Any]
_FORM = "application/x-www-form-urlencoded"


class Description:
    """The file, of which only what validates is kept."""

    def __init__(self, openapi: Json) -> None:
        self.version = str(openapi["info"]["version"])
        self._paths = openapi["paths"]
        self._components = _nullable({"schemas": openapi["components"]["schemas"]})

    def complaints(self, body: Json) -> list[str]:
        """What in an object is not as the file says."""
        if body.get("deleted"):
            return []
        reference = f"#/components/schemas/{body['object']}"
        validator = Draft202012Validator({"$ref": reference, "components": self._components})
        return [
            f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(body)
        ]

    def unknown_parameters(self, endpoint: Endpoint) -> list[str]:
        """The parameters that the fake takes and the file does not have."""
        parts = endpoint.path.split("/")
        for path, operations in self._paths.items():
            names = path.split("/")
            if len(names) == len(parts) and all(
                name == part or (name.startswith("{") and part == "{}")
                for name, part in zip(names, parts, strict=True)
            ):
                return list(_unknown(endpoint.fields, _taken(operations, endpoint.method), ""))
        return [f"there is no {endpoint.path}"]


def _taken(operations: Json, method: str) -> Json:
    """The schemas of an operation's parameters by their names."""
    operation = operations[method.lower()]
    body = operation.get("requestBody", {}).get("content", {}).get(_FORM, {}).get("schema", {})
    query = {one["name"]: one["schema"] for one in operation.get("parameters", [])}
    return {**query, **body.get("properties", {})}


def _unknown(fields: Mapping[str, Parameter], taken: Json, where: str) -> Iterator[str]:
    for name, field in fields.items():
        if name not in taken:
            yield f"{where}[{name}]"
        elif isinstance(field, Fields):
            schemas = [taken[name], *taken[name].get("anyOf", [])]
            inner: Json = {}
            for schema in schemas:
                inner |= schema.get("properties", {})
            yield from _unknown(field.members, inner, f"{where}[{name}]")


def _nullable(schema: Any) -> Any:  # noqa: ANN401 (JSON)
    """Writes OpenAPI's `nullable` as JSON Schema does."""
    if isinstance(schema, list):
        return [_nullable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {name: _nullable(value) for name, value in schema.items() if name != "nullable"}
    return {"anyOf": [{"type": "null"}, rest]} if schema.get("nullable") is True else rest
