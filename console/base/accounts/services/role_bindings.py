"""Gives members and service accounts roles in projects, and takes them away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from console.base.accounts.choices import PrincipalType
from console.base.accounts.errors import AlreadyBound, UnknownPrincipal, UnknownProject
from console.base.accounts.models import Membership, Project, RoleBinding, ServiceAccount
from console.base.accounts.services.rights import require_rights_of, require_role_in
from console.base.common import locks
from console.base.common.actor import Actor, Permission, denied
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError
from console.base.limits.services import require_room


class ProjectRole(TypedDict):
    """A role in a project that an invited person is to have."""

    project_id: str
    role: str


def create_role_binding(
    *, actor: Actor, principal_type: str, principal_id: str, project_id: str, role: str
) -> RoleBinding:
    """Gives a principal of the organization a role in one of its projects.

    The actor needs `MANAGE` in the project, and every right that the role grants there. Raises
    `UnknownProject`, `UnknownPrincipal`, `PermissionDenied`, `RoleTooHigh`, `AlreadyBound`,
    `LimitReached`.
    """
    project = _lock_project(actor, project_id)
    if not actor.may(Permission.MANAGE, project.pk):
        raise denied(actor, Permission.MANAGE)
    require_role_in(actor, role, project.pk)
    principal = _lock_principal(actor, principal_type, principal_id)
    locks.lock("role-bindings", actor.organization_id)
    bindings = RoleBinding.objects.for_organization(actor.organization_id)
    if bindings.filter(project=project, role=role, **principal).exists():
        raise AlreadyBound
    _require_room(actor.organization_id, 1)
    binding = RoleBinding.objects.create(
        organization_id=actor.organization_id, project=project, role=role, **principal
    )
    _audit_binding(actor, binding, "role_binding.create")
    return binding


def check_project_roles(*, actor: Actor, project_roles: Sequence[ProjectRole]) -> None:
    """Raises for roles in projects that the actor may not give, with their index in the list.

    Raises `UnknownProject`, `PermissionDenied`, `RoleTooHigh`, `LimitReached`, and `AlreadyBound`
    for a role that is in the list twice.
    """
    checked = set()
    for index, project_role in enumerate(project_roles):
        project_id, role = project_role["project_id"], project_role["role"]
        project = _lock_project(actor, project_id, pointer=f"/project_roles/{index}/project_id")
        if not actor.may(Permission.MANAGE, project.pk):
            raise denied(actor, Permission.MANAGE)
        require_role_in(actor, role, project.pk, pointer=f"/project_roles/{index}/role")
        if (project_id, role) in checked:
            raise AlreadyBound
        checked.add((project_id, role))
    _require_room(actor.organization_id, len(project_roles))


def bind_invited(*, actor: Actor, member: Membership, project_roles: Sequence[ProjectRole]) -> None:
    """Gives a new member the roles in projects that their invitation was sent with.

    A project that was deleted meanwhile is left out. Raises `LimitReached`.
    """
    projects = Project.objects.for_organization(actor.organization_id).current()
    projects = projects.select_for_update(no_key=True)
    ids = {project_role["project_id"] for project_role in project_roles}
    current = {project.pk for project in projects.filter(pk__in=ids)}
    bound = [
        project_role for project_role in project_roles if project_role["project_id"] in current
    ]
    locks.lock("role-bindings", actor.organization_id)
    _require_room(actor.organization_id, len(bound))
    for project_role in bound:
        binding = RoleBinding.objects.create(
            organization_id=actor.organization_id, membership=member, **project_role
        )
        _audit_binding(actor, binding, "role_binding.create")


def delete_role_binding(*, actor: Actor, binding: RoleBinding) -> None:
    """Takes a role in a project away. Raises `RoleTooHigh` for one above the actor's own."""
    require_rights_of(actor, binding)
    _audit_binding(actor, binding, "role_binding.delete")
    binding.delete()


def role_bindings_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts roles in all projects of an organization. `cluster_id` is ignored."""
    return RoleBinding.objects.for_organization(organization_id).count()


def _require_room(organization_id: str, adding: int) -> None:
    used = role_bindings_used(organization_id)
    require_room("role_bindings", organization_id=organization_id, used=used, adding=adding)


def _lock_project(actor: Actor, project_id: str, pointer: str = "/project_id") -> Project:
    """Returns a project with its row locked until the transaction ends.

    Raises `UnknownProject` if there is none, or the actor may not see it.
    """
    projects = Project.objects.for_organization(actor.organization_id).current()
    project = projects.select_for_update(no_key=True).filter(pk=project_id).first()
    if project is None or not actor.may(Permission.READ, project.pk):
        raise UnknownProject(errors=[FieldError(pointer, "unknown_project", UnknownProject.title)])
    return project


def _lock_principal(actor: Actor, principal_type: str, principal_id: str) -> dict[str, Any]:
    """Locks a principal's row until the transaction ends; returns a binding's column and its value.

    Raises `UnknownPrincipal`.
    """
    principal: Membership | ServiceAccount | None
    if principal_type == PrincipalType.USER:
        members = Membership.objects.for_organization(actor.organization_id)
        column = "membership"
        principal = members.select_for_update(no_key=True).filter(user_id=principal_id).first()
    else:
        accounts = ServiceAccount.objects.for_organization(actor.organization_id).current()
        column = "service_account"
        principal = accounts.select_for_update(no_key=True).filter(pk=principal_id).first()
    if principal is None:
        raise UnknownPrincipal(
            errors=[FieldError("/principal_id", "unknown_principal", UnknownPrincipal.title)]
        )
    return {column: principal}


def _audit_binding(actor: Actor, binding: RoleBinding, action: str) -> None:
    record_audit(
        actor=actor,
        action=action,
        target_type="role_binding",
        target_id=binding.pk,
        detail={
            "principal_type": binding.principal_type,
            "principal_id": binding.principal_id,
            "project_id": binding.project_id,
            "role": binding.role,
        },
    )
