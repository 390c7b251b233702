"""Checks that an actor has the rights that it is about to grant, to change or to take away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from console.base.accounts.errors import RoleTooHigh
from console.base.accounts.models import (
    ApiKey,
    Invitation,
    Membership,
    RoleBinding,
    ServiceAccount,
)
from console.base.accounts.services.authentication import granted_projects
from console.base.common.actor import GRANTS, Actor, Permission, Role
from console.base.common.errors import FieldError

Holder: TypeAlias = ApiKey | ServiceAccount | Membership | Invitation | RoleBinding


def require_rights_of(actor: Actor, holder: Holder) -> None:
    """Raises `RoleTooHigh` unless the actor has every right that `holder` has or will give.

    Whatever renames, disables, renews or ends a holder of rights calls it first. So nobody can put
    out of action what has more rights than they have, and nobody can use it for themselves.
    """
    role, projects = _rights_of(holder)
    if not actor.has_all_of(Role(role), projects):
        raise RoleTooHigh


def require_role(actor: Actor, role: str) -> None:
    """Raises `RoleTooHigh` unless the actor has all that a new role in the organization grants."""
    if not actor.has_all_of(Role(role)):
        raise _too_high("/role")


def require_role_in(actor: Actor, role: str, project_id: str, pointer: str = "/role") -> None:
    """Raises `RoleTooHigh` unless the actor has all that a new role grants in a project.

    `pointer` is the JSON pointer to the role in the request's body.
    """
    if not GRANTS[Role(role)] <= actor.granted(project_id):
        raise _too_high(pointer)


def _rights_of(holder: Holder) -> tuple[str, Mapping[str, frozenset[Permission]]]:
    """Returns the role in the organization, and the permissions in each project by its id."""
    match holder:
        case ApiKey(service_account=ServiceAccount() as account):
            return _rights_of(account)
        case ApiKey():
            return holder.role, {}
        case ServiceAccount() | Membership():
            return holder.role, granted_projects(holder.role_bindings.all())
        case Invitation():
            roles = [RoleBinding(**project_role) for project_role in holder.project_roles]
            return holder.role, granted_projects(roles)
        case RoleBinding():
            # A role in a project takes nothing from what its principal has beside it.
            return Role.MEMBER, granted_projects([holder])


def _too_high(pointer: str) -> RoleTooHigh:
    return RoleTooHigh(errors=[FieldError(pointer, "role_too_high", RoleTooHigh.title)])
