"""Roles in projects: given to members and service accounts, and taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from console.base.accounts.choices import PrincipalType
from console.base.accounts.errors import AlreadyBound, UnknownPrincipal, UnknownProject
from console.base.accounts.models import Membership, Project, RoleBinding, ServiceAccount
from console.base.accounts.services.rights import require_role_in
from console.base.common import locks
from console.base.common.actor import Actor, Permission, denied
from console.base.common.audit import record_audit
from console.base.common.errors import FieldError
from console.base.limits.services import require_room


class ProjectRole(TypedDict):
    """A role in a project that somebody is to have."""

    project_id: str
    role: str


def create_role_binding(
    *, actor: Actor, principal_type: str, principal_id: str, project_id: str, role: str
) -> RoleBinding:
    """Gives a principal of the organisation a role in one of its projects.

    Takes `MANAGE` in the project, and every right that the role grants there. Raises
    `UnknownProject`, `UnknownPrincipal`, `PermissionDenied`, `RoleTooHigh`, `AlreadyBound`,
    `LimitReached`.
    """
    project = _project(actor, project_id)
    if not actor.may(Permission.MANAGE, project.pk):
        raise denied(actor, Permission.MANAGE)
    require_role_in(actor, role, project.pk)
    principal = _principal(actor, principal_type, principal_id)
    locks.lock("role-bindings", actor.organization_id)
    bindings = RoleBinding.objects.for_organization(actor.organization_id)
    if bindings.filter(project=project, role=role, **principal).exists():
        raise AlreadyBound
    _require_room(actor.organization_id, 1)
    binding = RoleBinding.objects.create(
        organization_id=actor.organization_id, project=project, role=role, **principal
    )
    _audit(actor, binding, "role_binding.create")
    return binding


def check_project_roles(*, actor: Actor, wanted: Sequence[ProjectRole]) -> None:
    """Raises for roles in projects that the actor could not give, at their place in the list.

    `UnknownProject`, `PermissionDenied`, `RoleTooHigh`, `LimitReached`; `AlreadyBound` for one that
    is there twice.
    """
    seen = set()
    for place, each in enumerate(wanted):
        project_id, role = each["project_id"], each["role"]
        project = _project(actor, project_id, pointer=f"/project_roles/{place}/project_id")
        if not actor.may(Permission.MANAGE, project.pk):
            raise denied(actor, Permission.MANAGE)
        require_role_in(actor, role, project.pk, pointer=f"/project_roles/{place}/role")
        if (project_id, role) in seen:
            raise AlreadyBound
        seen.add((project_id, role))
    _require_room(actor.organization_id, len(wanted))


def bind_invited(*, actor: Actor, member: Membership, wanted: Sequence[ProjectRole]) -> None:
    """Gives a new member the roles in projects that the invitation was sent with.

    A project that is gone by now is left out. Raises `LimitReached`.
    """
    there = Project.objects.for_organization(actor.organization_id).current()
    there = there.select_for_update(no_key=True)
    found = {project.pk for project in there.filter(pk__in={each["project_id"] for each in wanted})}
    given = [each for each in wanted if each["project_id"] in found]
    locks.lock("role-bindings", actor.organization_id)
    _require_room(actor.organization_id, len(given))
    for each in given:
        binding = RoleBinding.objects.create(
            organization_id=actor.organization_id, membership=member, **each
        )
        _audit(actor, binding, "role_binding.create")


def delete_role_binding(*, actor: Actor, binding: RoleBinding) -> None:
    """Takes a role in a project away. Raises `RoleTooHigh` for one above the actor's own."""
    require_role_in(actor, binding.role, binding.project_id)
    _audit(actor, binding, "role_binding.delete")
    binding.delete()


def role_bindings_used(organization_id: str, cluster_id: str = "") -> int:
    """Roles in all projects. They are the organisation's, not a cluster's."""
    del cluster_id
    return RoleBinding.objects.for_organization(organization_id).count()


def _require_room(organization_id: str, adding: int) -> None:
    used = role_bindings_used(organization_id)
    require_room("role_bindings", organization_id=organization_id, used=used, adding=adding)


def _project(actor: Actor, project_id: str, pointer: str = "/project_id") -> Project:
    """The project, which stays until the transaction ends, if the actor may see it."""
    projects = Project.objects.for_organization(actor.organization_id).current()
    project = projects.select_for_update(no_key=True).filter(pk=project_id).first()
    if project is None or not actor.may(Permission.READ, project.pk):
        raise UnknownProject(errors=[FieldError(pointer, "unknown_project", UnknownProject.title)])
    return project


def _principal(actor: Actor, principal_type: str, principal_id: str) -> dict[str, Any]:
    """The columns that name it; its row stays until the transaction ends."""
    found: Membership | ServiceAccount | None
    if principal_type == PrincipalType.USER:
        members = Membership.objects.for_organization(actor.organization_id)
        name = "membership"
        found = members.select_for_update(no_key=True).filter(user_id=principal_id).first()
    else:
        accounts = ServiceAccount.objects.for_organization(actor.organization_id).current()
        name = "service_account"
        found = accounts.select_for_update(no_key=True).filter(pk=principal_id).first()
    if found is None:
        raise UnknownPrincipal(
            errors=[FieldError("/principal_id", "unknown_principal", UnknownPrincipal.title)]
        )
    return {name: found}


def _audit(actor: Actor, binding: RoleBinding, action: str) -> None:
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
