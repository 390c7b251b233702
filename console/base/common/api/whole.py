"""Whole numbers that no double holds, written as text.

JSON's numbers have no bound, but what reads them does: JavaScript, and Go where no type is given,
keep 53 bits, and change the last digits of what is longer without a word. Offsets, times of records
and quantities of usage can be longer, so they are written as strings of digits. Where one is read,
a JSON number is taken as well.
"""

from __future__ import annotations

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
DIGITS = "^-?[0-9]+$"


class WholeField(serializers.IntegerField):
    """A whole number of any length, which JSON has as a string of digits."""

    # The name in OpenAPI's registry of formats for what has no bound.
    format = "decimal"

    def to_representation(self, value: Any) -> str:  # type: ignore[override]
        """The digits, with a sign where it is negative."""
        return str(int(value))


class Int64Field(WholeField):
    """A whole number of 64 bits, such as an offset, which JSON has as a string of digits."""

    format = "int64"

    def __init__(self, **options: Any) -> None:
        options.setdefault("min_value", INT64_MIN)
        options.setdefault("max_value", INT64_MAX)
        super().__init__(**options)


class WholeFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Describes the fields above: a string in answers, a string or a number in requests."""

    target_class = WholeField
    match_subclasses = True

    def map_serializer_field(
        self, auto_schema: AutoSchema, direction: Literal["request", "response"]
    ) -> dict[str, Any]:
        """The field's schema without null, which drf-spectacular adds."""
        text = {"type": "string", "format": self.target.format, "pattern": DIGITS}
        # What stands in an address is text in any case.
        if direction == "response" or getattr(auto_schema, "method", "") == "GET":
            return text
        number: dict[str, Any] = {"type": "integer", "format": self.target.format}
        if self.target.min_value not in {None, INT64_MIN}:
            number["minimum"] = self.target.min_value
        if self.target.max_value not in {None, INT64_MAX}:
            number["maximum"] = self.target.max_value
        return {"oneOf": [text, number]}


def as_text(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    """A copy of fields, in which these members are text. None stays None."""
    return fields | {name: None if fields[name] is None else str(fields[name]) for name in names}
