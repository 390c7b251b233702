"""Nobody hands out what they do not have, and nobody takes it from who has more."""

from __future__ import annotations

from collections.abc import Mapping

from console.base.accounts.errors import RoleTooHigh
from console.base.common.actor import GRANTS, Actor, Permission, Role
from console.base.common.errors import FieldError


def require_role(actor: Actor, role: str) -> None:
    """The actor could hand out a role in the organisation. Raises `RoleTooHigh`."""
    require_rights(actor, role, {})


def require_role_in(actor: Actor, role: str, project_id: str, pointer: str = "/role") -> None:
    """The actor could hand out a role in a project. Raises `RoleTooHigh`."""
    if not GRANTS[Role(role)] <= actor.granted(project_id):
        raise _too_high(pointer)


def require_rights(actor: Actor, role: str, projects: Mapping[str, frozenset[Permission]]) -> None:
    """The actor has all that this role grants, and these rights in projects."""
    if not actor.has_all_of(Role(role), projects):
        raise _too_high()


def _too_high(pointer: str = "/role") -> RoleTooHigh:
    return RoleTooHigh(errors=[FieldError(pointer, "role_too_high", RoleTooHigh.title)])
