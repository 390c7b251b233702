"""ETag and If-Match, from a resource's generation.

The generation counts changes of what was asked for (the spec), so an ETag does not change with what
is observed, and answers no `If-None-Match`. What is no row has no generation: its `digest` of all
that can be asked for stands in.
"""

from __future__ import annotations

from rest_framework.request import Request

from console.base.common.errors import PreconditionFailed


def etag(resource: object) -> str | None:
    """The entity tag of a resource with a `generation` or a `digest`; None of any other."""
    version = getattr(resource, "generation", None)
    if version is None:
        version = getattr(resource, "digest", None)
    return f'"{version}"' if version is not None else None


def headers(resource: object) -> dict[str, str]:
    """The `ETag` header of a resource, if it has one."""
    tag = etag(resource)
    return {"ETag": tag} if tag else {}


def check_if_match(request: Request, resource: object) -> None:
    """Raises `PreconditionFailed` if `If-Match` is there and does not name the resource's tag."""
    given = request.headers.get("If-Match")
    if given is None or given.strip() == "*":
        return
    tags = {tag.strip() for tag in given.split(",")}
    current = etag(resource)
    if current is not None and current not in tags:
        raise PreconditionFailed(
            f"If-Match names {given}, the resource is at {current}.", extra={"etag": current}
        )
