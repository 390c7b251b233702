"""Paths of requests whose parts may be names with a `/` in them, such as `groups/a%2Fb`.

A server decodes the whole path before Django sees it, after which that is `groups/a/b`: nobody can
tell the name's `/` from those between the parts. So paths are made here from what was sent: each
part is decoded by itself, and a `/` or `%` that is in one stays escaped, as `%2F` and `%25`.
Routes are matched on that; `name_of` then gives the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote, unquote

from django.core.handlers.asgi import ASGIHandler, ASGIRequest

# Browsers and proxies take the parts `.` and `..` for steps, escaped or not. Names of this form
# have one `~` more in a path, by which they are none.
DOTS = re.compile(r"~*\.{1,2}")


def path_of(raw_path: str) -> str:
    """The path that routes are matched on, of one as it was sent (without its query)."""
    parts = (unquote(part) for part in raw_path.split("/"))
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def name_of(part: str) -> str:
    """The name that a part of such a path means."""
    name = unquote(part)
    return name[1:] if name.startswith("~") and DOTS.fullmatch(name) else name


class PartedRequest(ASGIRequest):
    """A request whose `path` and `path_info` are as `path_of` makes them."""

    def __init__(self, scope: Mapping[str, Any], body_file: IO[bytes]) -> None:
        # Servers may leave it out; what is left then is a path without names that have a `/`.
        raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
        super().__init__({**scope, "path": path_of(raw_path.decode("ascii"))}, body_file)

    def get_full_path(self, force_append_slash: bool = False) -> str:
        """The path and the query for another request: what is escaped is not escaped again."""
        path, mark, query = super().get_full_path(force_append_slash).partition("?")
        return path.replace("%25", "%") + mark + query


class PartedHandler(ASGIHandler):
    """Django as an ASGI application that keeps the parts of paths apart."""

    request_class = PartedRequest
