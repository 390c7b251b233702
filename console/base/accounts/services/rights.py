"""Checks that an actor has the rights that it is about to grant or to take away."""

from __future__ import annotations

from collections.abc import Mapping

from console.base.accounts.errors import RoleTooHigh
from console.base.common.actor import GRANTS, Actor, Permission, Role
from console.base.common.errors import FieldError


def require_role(actor: Actor, role: str) -> None:
    """Raises `RoleTooHigh` unless the actor has all that a role in the organization grants."""
    require_rights(actor, role, {})


def require_role_in(actor: Actor, role: str, project_id: str, pointer: str = "/role") -> None:
    """Raises `RoleTooHigh` unless the actor has all that a role grants in a project.

    `pointer` is the JSON pointer to the role in the request's body.
    """
    if not GRANTS[Role(role)] <= actor.granted(project_id):
        raise _too_high(pointer)


def require_rights(actor: Actor, role: str, projects: Mapping[str, frozenset[Permission]]) -> None:
    """Raises `RoleTooHigh` unless the actor has all that `role` grants, and all of `projects`.

    `projects` maps project ids to permissions in them.
    """
    if not actor.has_all_of(Role(role), projects):
        raise _too_high()


def _too_high(pointer: str = "/role") -> RoleTooHigh:
    return RoleTooHigh(errors=[FieldError(pointer, "role_too_high", RoleTooHigh.title)])
