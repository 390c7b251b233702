"""The routes that Django's URL resolver has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.admindocs.views import simplify_regex
from django.urls import URLPattern, URLResolver, get_resolver

HTTP_METHODS = ("get", "post", "put", "patch", "delete")


def served_routes() -> dict[str, set[str]]:
    """Returns the methods of every path that is served, by the path's pattern."""
    routes: dict[str, set[str]] = {}
    for address, callback in _all_patterns(get_resolver().url_patterns, ""):
        routes.setdefault(address, set()).update(_methods_of(callback))
    return routes


def views_of(resolver: URLResolver) -> Iterator[type]:
    """The class of every view that has one; some come several times."""
    for _, callback in _all_patterns(resolver.url_patterns, ""):
        kind = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
        if kind is not None:
            yield kind


def _all_patterns(entries: list[Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yields the pattern and the view of every entry, with those of nested resolvers."""
    for entry in entries:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _all_patterns(entry.url_patterns, pattern)
        elif isinstance(entry, URLPattern):
            yield _plain_path(pattern), entry.callback


def _plain_path(pattern: str) -> str:
    """Returns a pattern in the form `/api/v1/api-keys/<id>`."""
    plain = re.sub(r"<\w+:(\w+)>", r"<\1>", pattern)
    return simplify_regex(plain)


def _methods_of(callback: Any) -> set[str]:  # noqa: ANN401 - a view of any kind
    if hasattr(callback, "actions"):  # a viewset
        return {method.upper() for method in callback.actions} - {"HEAD"}
    kind = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
    if kind is not None:
        return {method.upper() for method in HTTP_METHODS if hasattr(kind, method)}
    return {"GET"}  # a view function; all of them only read
