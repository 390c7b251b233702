"""Whether the actor's role grants what the view's action asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from console.base.common.actor import Actor, Permission, actor_of, denied, require
from console.base.common.errors import NotAuthenticated

if TYPE_CHECKING:
    from rest_framework.views import APIView


class ActorMay(BasePermission):
    """Reads need `READ`, changes `WRITE`, unless the view's `permissions_required` says else.

    In the organisation; of a view that says `in_projects`, in any project, and of what the request
    is about in its own project.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises what says which: not authenticated, or not permitted."""
        if not isinstance(request.auth, Actor):
            raise NotAuthenticated
        actor, needed = request.auth, needed_permission(request.method or "", view)
        if not getattr(view, "in_projects", False):
            require(actor, needed)
        # Who may read nothing finds nothing, and lists are empty.
        elif needed is not Permission.READ and not actor.may_somewhere(needed):
            raise denied(actor, needed)
        return True

    def has_object_permission(self, request: Request, view: APIView, obj: object) -> bool:
        """Raises `PermissionDenied` for what may be seen, `NotFound` for what may not."""
        actor, needed = actor_of(request), needed_permission(request.method or "", view)
        if not actor.may(needed):
            project_id = getattr(view, "project_of", _nowhere)(obj)
            # Of what has no project of its own the view has decided by what it looks for.
            if project_id is not None:
                require(actor, needed, project_id)
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


def _nowhere(obj: object) -> None:
    """The project of what has none."""
    del obj
