"""Checks whether the actor's role grants the permission that the view's action requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from console.base.common.actor import Actor, Permission, actor_of, denied, require_permission
from console.base.common.errors import NotAuthenticated

if TYPE_CHECKING:
    from rest_framework.views import APIView


class ActorMay(BasePermission):
    """Reads require `READ`, changes `WRITE`, unless the view's `permissions_required` differs.

    The actor must have the permission in the organization. For a view that sets `in_projects` it
    suffices to have it in any project, and then in the project of the row that is read or changed.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Returns True, or raises `NotAuthenticated` or `PermissionDenied`."""
        if not isinstance(request.auth, Actor):
            raise NotAuthenticated
        actor, needed = request.auth, needed_permission(request.method or "", view)
        if not getattr(view, "in_projects", False):
            require_permission(actor, needed)
        # A read passes even without any permission: lists are then empty, and no row is found.
        elif needed is not Permission.READ and not actor.may_somewhere(needed):
            raise denied(actor, needed)
        return True

    def has_object_permission(self, request: Request, view: APIView, obj: object) -> bool:
        """Returns True, or raises `PermissionDenied`, or `NotFound` if the row may not be seen."""
        actor, needed = actor_of(request), needed_permission(request.method or "", view)
        if not actor.may(needed):
            project_id = getattr(view, "project_of", _no_project)(obj)
            # A row without a project of its own: the view's queryset has decided who sees it.
            if project_id is not None:
                require_permission(actor, needed, project_id)
        return True


class Anyone(BasePermission):
    """Allows every request: for the few endpoints that need no credential."""


def needed_permission(method: str, view: object) -> Permission:
    """Returns the permission that a view requires, by action, by method, or by the default rule.

    By default reads require `READ` and changes `WRITE`.
    """
    required: dict[str, Permission] = getattr(view, "permissions_required", {})
    action = getattr(view, "action", None)
    for name in (action, method):
        if name in required:
            return required[name]
    return Permission.READ if method in SAFE_METHODS else Permission.WRITE


def _no_project(obj: object) -> None:
    """Takes the place of `project_of` in views whose rows have no project."""
