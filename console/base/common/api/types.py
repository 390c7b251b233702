"""Finds numbers and truth values that a request gives as something else.

The framework reads `"1.000"`, `"1_000"` and Arabic digits as integers, and `"no"` as false. For
who wrote `"12.00"` and meant 12 dollars, 12 cents are a guess. So bodies give them as JSON has
them, and parameters, which are text, as plain digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from rest_framework import serializers

from console.base.common.api.problems import escape_name
from console.base.common.api.unknown import ERRORS_MAX
from console.base.common.api.whole import WholeField
from console.base.common.errors import FieldError

_DIGITS = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WHOLE_NUMBER = "A whole number is expected, as a JSON number."
DIGITS = "A whole number is expected: digits, with nothing between them."
NUMBER = "A number is expected, as a JSON number."
TRUTH = "true or false is expected."


def mistyped_fields(
    serializer: serializers.BaseSerializer[object], body: object
) -> list[FieldError]:
    """An error for each number and truth value of a body that is of another type; at most
    `ERRORS_MAX`. Objects and lists within the body are searched too."""
    return list(islice(_mistyped_within(serializer, body, ""), ERRORS_MAX))


def mistyped_parameters(
    serializer: serializers.BaseSerializer[object], parameters: Mapping[str, str]
) -> list[FieldError]:
    """An error for each query parameter that is to be a number and is not written as one."""
    if not isinstance(serializer, serializers.Serializer):
        return []
    return [
        FieldError(f"?{name}", "invalid", DIGITS if _is_whole(field) else NUMBER)
        for name, field in serializer.fields.items()
        if name in parameters and not _is_number_text(field, parameters[name])
    ]


def _is_whole(field: object) -> bool:
    return isinstance(field, serializers.IntegerField)


def _is_number_text(field: object, text: str) -> bool:
    if not text:
        return True  # the serializer says what an empty value is
    if _is_whole(field):
        return _DIGITS.fullmatch(text) is not None
    if isinstance(field, serializers.FloatField | serializers.DecimalField):
        return _DECIMAL.fullmatch(text) is not None
    return True


def _mistyped_within(field: object, value: object, pointer: str) -> Iterator[FieldError]:
    match field, value:
        case _, None:
            return
        case serializers.Serializer(), Mapping():
            for name, inner in field.fields.items():
                if name in value and not inner.read_only:
                    yield from _mistyped_within(
                        inner, value[name], f"{pointer}/{escape_name(name)}"
                    )
        case (
            serializers.ListSerializer(child=child) | serializers.ListField(child=child),
            list(),
        ):
            for index, item in enumerate(value):
                yield from _mistyped_within(child, item, f"{pointer}/{index}")
        case serializers.DictField(child=child), Mapping():
            for name, item in value.items():
                yield from _mistyped_within(child, item, f"{pointer}/{escape_name(name)}")
        case _:
            complaint = _complaint(field, value)
            if complaint:
                yield FieldError(pointer or "/", "invalid", complaint)


def _complaint(field: object, value: object) -> str:
    """What is wrong with a single value's type; empty for nothing."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match field:
        case WholeField():
            written = isinstance(value, str) and _DIGITS.fullmatch(value) is not None
            return "" if number or written else DIGITS
        case serializers.IntegerField():
            return "" if number else WHOLE_NUMBER
        case serializers.FloatField():
            return "" if number else NUMBER
        case serializers.BooleanField():
            return "" if isinstance(value, bool) else TRUTH
        case _:
            return ""
