"""Whether the actor's role grants what the view's action asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from console.common.actor import Actor, Permission
from console.common.errors import NotAuthenticated, PermissionDenied

if TYPE_CHECKING:
    from rest_framework.views import APIView


class ActorMay(BasePermission):
    """Reads need `READ`, changes `WRITE`, unless the view's `permissions_required` says else."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what says which: not authenticated, or not permitted."""
        if not isinstance(request.auth, Actor):
            raise NotAuthenticated
        needed = needed_permission(request.method or "", view)
        if not request.auth.may(needed):
            message = f"The role {request.auth.role} does not grant {needed}."
            raise PermissionDenied(message)
        return True


class Anyone(BasePermission):
    """For the few endpoints that need nobody to be signed in."""


def needed_permission(method: str, view: object) -> Permission:
    """What the view asks for: by action, by method, or by the rule that reads read."""
    required: dict[str, Permission] = getattr(view, "permissions_required", {})
    action = getattr(view, "action", None)
    for name in (action, method):
        if name in required:
            return required[name]
    return Permission.READ if method in SAFE_METHODS else Permission.WRITE
