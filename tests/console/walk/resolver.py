"""The routes that the URL table really has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.admindocs.views import simplify_regex
from django.urls import URLPattern, URLResolver, get_resolver

HTTP_METHODS = ("get", "post", "put", "patch", "delete")


def served_routes() -> dict[str, set[str]]:
    """Address → methods, of everything that the URL table serves."""
    routes: dict[str, set[str]] = {}
    for address, callback in _patterns(get_resolver().url_patterns, ""):
        routes.setdefault(address, set()).update(_methods(callback))
    return routes


def _patterns(entries: list[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for entry in entries:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _patterns(entry.url_patterns, pattern)
        elif isinstance(entry, URLPattern):
            yield _address(pattern), entry.callback


def _address(pattern: str) -> str:
    """A pattern as `/api/v1/api-keys/<id>`."""
    plain = re.sub(r"<\w+:(\w+)>", r"<\1>", pattern)
    return simplify_regex(plain)


def _methods(callback: Any) -> set[str]:  # noqa: ANN401 - a view of any kind
    if hasattr(callback, "actions"):  # a viewset
        return {method.upper() for method in callback.actions} - {"HEAD"}
    kind = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
    if kind is not None:
        return {method.upper() for method in HTTP_METHODS if hasattr(kind, method)}
    return {"GET"}  # a function, all of which only show something
