"""Lists are `{"items": […], "next_cursor": …}`: keyset pages behind an opaque cursor.

A cursor names the last row of a page, so a page costs the same wherever it is, and rows that come
and go meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Field, Model, Q
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.base.common.errors import FieldError, ValidationFailed

LIMIT_DEFAULT = 50
LIMIT_MAX = 200

Item = TypeVar("Item")


class KeysetPagination(BasePagination):
    """Pages of a queryset, newest first, or by the view's `list_ordering`.

    `list_ordering` names one or two fields that are never null, the last of them unique. A view's
    `limit_max` is how many rows a page may have.
    """

    ordering: tuple[str, ...] = ("-created_at", "-id")

    def __init__(self) -> None:
        self.next_cursor: str | None = None

    def paginate_queryset(
        self,
        queryset: Any,
        request: Request,
        view: APIView | None = None,
    ) -> list[Any]:
        """Returns one page of rows. Reads one row more, to know whether there is a next page."""
        ordering: tuple[str, ...] = getattr(view, "list_ordering", self.ordering)
        limit = page_limit(request, limit_max_of(view))
        after = read_cursor(request, len(ordering))
        if after is not None:
            queryset = queryset.filter(_rows_behind(queryset.model, ordering, after))
        rows = list(queryset.order_by(*ordering)[: limit + 1])
        if len(rows) > limit:
            rows = rows[:limit]
            self.next_cursor = write_cursor([_ordering_value(rows[-1], name) for name in ordering])
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        """Returns the answer for a page of serialized rows."""
        return Response({"items": data, "next_cursor": self.next_cursor})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Returns the page's schema for the OpenAPI file."""
        return page_schema(schema)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Returns the parameters of a list for the OpenAPI file."""
        limit_max = limit_max_of(view)
        return [
            {**parameter, "schema": {**parameter["schema"], "maximum": limit_max}}
            if parameter["name"] == "limit"
            else parameter
            for parameter in PARAMETERS
        ]


def limit_max_of(view: APIView | None) -> int:
    """Returns how many items a page of a view's lists has at most."""
    return int(getattr(view, "limit_max", LIMIT_MAX))


def page_of(
    request: Request,
    items: Sequence[Item],
    *,
    key: Callable[[Item], str],
    limit_max: int = LIMIT_MAX,
    page_max: int | None = None,
) -> tuple[list[Item], str | None]:
    """Returns a page of items in the order of a unique key, and the next page's cursor or None.

    It is for lists that are in memory anyway, such as a cluster's topics. A page has no more than
    `page_max` items, also where the client allows more.
    """
    ordered = sorted(items, key=key)
    after = read_cursor(request, 1)
    if after is not None:
        ordered = [item for item in ordered if key(item) > str(after[0])]
    limit = page_limit(request, limit_max)
    if page_max is not None:
        limit = min(limit, page_max)
    page = ordered[:limit]
    return page, write_cursor([key(page[-1])]) if len(ordered) > limit else None


def page_of_names(
    request: Request, names: Sequence[str], *, limit_max: int = LIMIT_MAX
) -> tuple[list[str], str | None]:
    """Returns a page of sorted, unique names, and the next page's cursor or None.

    Unlike `page_of` it bisects: the cost of a page does not grow with the list.
    """
    after = read_cursor(request, 1)
    first = 0 if after is None else bisect_right(names, str(after[0]))
    behind = first + page_limit(request, limit_max)
    page = list(names[first:behind])
    return page, write_cursor([page[-1]]) if behind < len(names) else None


def page_limit(request: Request, limit_max: int = LIMIT_MAX) -> int:
    """Returns the query parameter `limit`, or its default. Raises `ValidationFailed`."""
    text = request.query_params.get("limit")
    if text is None:
        return LIMIT_DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= limit_max:
        raise _invalid_parameter("limit", f"A whole number from 1 to {limit_max} is expected.")
    return int(text)


def read_cursor(request: Request, values: int) -> list[str] | None:
    """Returns the ordering values of the row before the page, from the query parameter `cursor`.

    `values` is how many there must be. Returns None for the first page. Raises `ValidationFailed`.
    """
    text = request.query_params.get("cursor")
    if not text:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        decoded = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise _invalid_parameter("cursor", "This is not a cursor that a list gave.") from error
    if (
        not isinstance(decoded, list)
        or len(decoded) != values
        # PostgreSQL refuses NUL and lone surrogates in a text; neither is printable.
        or not all(isinstance(value, str) and value.isprintable() for value in decoded)
    ):
        raise _invalid_parameter("cursor", "This is a cursor of another list.")
    return decoded


def write_cursor(values: Sequence[object]) -> str:
    """Returns the cursor of the page behind a row with these ordering values."""
    text = json.dumps([str(value) for value in values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _invalid_parameter(name: str, detail: str) -> ValidationFailed:
    return ValidationFailed(detail, errors=[FieldError(f"?{name}", "invalid", detail)])


def _ordering_value(row: Model, name: str) -> str:
    value = getattr(row, name.lstrip("-"))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _rows_behind(model: type[Model], ordering: Sequence[str], after: Sequence[str]) -> Q:
    """Returns the condition for rows behind a cursor's values.

    Such a row is greater (in a descending field less) in the first field that differs. Raises
    `ValidationFailed` for a value that its field does not take.
    """
    condition = Q()
    same = Q()
    for name, text in zip(ordering, after, strict=True):
        field = name.lstrip("-")
        try:
            value = cast("Field[Any, Any]", model._meta.get_field(field)).to_python(text)
        except (DjangoValidationError, ValueError) as error:
            detail = "This is not a cursor that a list gave."
            raise _invalid_parameter("cursor", detail) from error
        comparison = "lt" if name.startswith("-") else "gt"
        condition |= same & Q(**{f"{field}__{comparison}": value})
        same &= Q(**{field: value})
    return condition


def page_schema(items: dict[str, Any]) -> dict[str, Any]:
    """Returns the OpenAPI schema of a page whose items are as the schema `items` says."""
    return {
        "type": "object",
        "required": ["items", "next_cursor"],
        "properties": {
            "items": items,
            "next_cursor": {
                "type": ["string", "null"],
                "description": "For the parameter `cursor` of the next page; null on the last.",
                # Without it the generated examples of lists would lack the member.
                "example": None,
            },
        },
    }


PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "cursor",
        "in": "query",
        "required": False,
        "description": "The `next_cursor` of the page before.",
        "schema": {"type": "string"},
    },
    {
        "name": "limit",
        "in": "query",
        "required": False,
        "description": "How many items a page has at most.",
        "schema": {
            "type": "integer",
            "minimum": 1,
            "maximum": LIMIT_MAX,
            "default": LIMIT_DEFAULT,
        },
    },
]
