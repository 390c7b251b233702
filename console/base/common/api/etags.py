"""ETag and If-Match, from a resource's generation.

The generation counts changes of the specification, so an ETag does not change with the observed
status, and does not serve for `If-None-Match`. A resource that is not a row has no generation: a
`digest` of its specification takes its place.
"""

from __future__ import annotations

from rest_framework.request import Request

from console.base.common.errors import PreconditionFailed


def etag(resource: object) -> str | None:
    """Returns the entity tag of a resource with a `generation` or a `digest`; None without one."""
    version = getattr(resource, "generation", None)
    if version is None:
        version = getattr(resource, "digest", None)
    return f'"{version}"' if version is not None else None


def headers(resource: object) -> dict[str, str]:
    """Returns the `ETag` header of a resource, or no header if it has no tag."""
    tag = etag(resource)
    return {"ETag": tag} if tag else {}


def check_if_match(request: Request, resource: object) -> None:
    """Raises `PreconditionFailed` if `If-Match` is there and does not name the resource's tag."""
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return
    tags = {tag.strip() for tag in header.split(",")}
    current = etag(resource)
    if current is not None and current not in tags:
        raise PreconditionFailed(
            f"If-Match names {header}, the resource is at {current}.", extra={"etag": current}
        )
