"""Finds what a request names and its operation does not take: fields of its body, and parameters.

A name that is ignored does not do what it says: a budget in EUR that is made in USD, a deletion
that was only to be validated. So every such name is an error, with the known name that is nearest
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice

from rest_framework import serializers

from console.base.common.api.problems import escape_name
from console.base.common.errors import FieldError

# An answer names so many of them, and so much of a long name.
ERRORS_MAX = 20
NAME_CHARS_MAX = 100
# The field of a body that has several of what the operation makes one of without it.
SEVERAL = "items"
# How alike two names are at least, from 0 to 1, so that one is taken for a mistyped other one.
LIKENESS_MIN = 0.6


def unknown_fields(
    serializer: serializers.BaseSerializer[object],
    body: object,
    *,
    shown: Callable[[], Collection[str]] = frozenset,
) -> list[FieldError]:
    """Returns an error for each field of a body that the serializer does not take.

    Objects and lists within the body are searched too. `shown` gives the names of fields that
    answers have: such a field is not unknown, but it is not taken either. At most `ERRORS_MAX`.
    """
    return list(islice(_unknown_within(serializer, body, "", shown), ERRORS_MAX))


def unknown_parameters(names: Iterable[str], known: Collection[str]) -> list[FieldError]:
    """Returns an error for each name of a query parameter that is not known."""
    unknown = (name for name in names if name not in known)
    return [
        FieldError(
            f"?{_shortened(name)}",
            "unknown_parameter",
            f"This operation takes no parameter `{_shortened(name)}`.{_suggestion(name, known)}",
        )
        for name in islice(unknown, ERRORS_MAX)
    ]


def fields_without_use(body: object) -> list[FieldError]:
    """Returns an error for each field of a body whose operation takes none."""
    detail = "This operation takes no body."
    if isinstance(body, Mapping):
        return [
            _field_error("", name, "unknown_field", detail) for name in islice(body, ERRORS_MAX)
        ]
    return [FieldError("/", "unknown_field", detail)] if body else []


def _unknown_within(
    field: object, value: object, pointer: str, shown: Callable[[], Collection[str]]
) -> Iterator[FieldError]:
    """Yields the errors of a value that a field takes, with pointers that begin with `pointer`."""
    match field, value:
        case serializers.Serializer(), Mapping():
            yield from _unknown_of_object(field, value, pointer, shown)
        case (
            serializers.ListSerializer(child=child) | serializers.ListField(child=child),
            list(),
        ) if _has_fields(child):
            for index, item in enumerate(value):
                yield from _unknown_within(child, item, f"{pointer}/{index}", shown)
        case serializers.DictField(child=child), Mapping() if _has_fields(child):
            for name, item in value.items():
                inner = f"{pointer}/{escape_name(_shortened(name))}"
                yield from _unknown_within(child, item, inner, frozenset)


def _unknown_of_object(
    serializer: serializers.Serializer[object],
    body: Mapping[str, object],
    pointer: str,
    shown: Callable[[], Collection[str]],
) -> Iterator[FieldError]:
    taken = {name: field for name, field in serializer.fields.items() if not field.read_only}
    for name, value in body.items():
        if name in taken:
            inner = f"{pointer}/{escape_name(name)}"
            alike = shown if name == SEVERAL else frozenset
            yield from _unknown_within(taken[name], value, inner, alike)
        elif name in serializer.fields or name in shown():
            detail = f"`{name}` is a field of answers, which this request does not take."
            yield _field_error(pointer, name, "read_only", detail)
        else:
            detail = f"This request takes no field `{_shortened(name)}`."
            detail += _suggestion(name, taken)
            yield _field_error(pointer, name, "unknown_field", detail)


def _has_fields(field: object) -> bool:
    """Returns whether a value of a field can have fields of its own, so that a search pays."""
    composite = (serializers.ListSerializer, serializers.ListField, serializers.DictField)
    if isinstance(field, composite):
        return _has_fields(field.child)
    return isinstance(field, serializers.Serializer)


def _field_error(pointer: str, name: str, code: str, detail: str) -> FieldError:
    return FieldError(f"{pointer}/{escape_name(_shortened(name))}", code, detail)


def _suggestion(name: str, known: Collection[str]) -> str:
    """Returns the question whether the nearest known name is meant; empty if none is near."""
    if len(name) > NAME_CHARS_MAX:
        return ""
    plain = {_plain(candidate): candidate for candidate in sorted(known)}
    near = get_close_matches(_plain(name), plain, n=1, cutoff=LIKENESS_MIN)
    return f" Did you mean `{plain[near[0]]}`?" if near else ""


def _plain(name: str) -> str:
    """Returns a name without what other styles write differently: `retentionMs`, `retention-ms`."""
    return name.replace("_", "").replace("-", "").replace(".", "").lower()


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_CHARS_MAX else f"{name[:NAME_CHARS_MAX]}…"
