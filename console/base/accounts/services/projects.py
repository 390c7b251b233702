"""Projects: parts of an organization's clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.base.accounts.errors import (
    DefaultProjectStays,
    ProjectForbidden,
    UnknownProject,
)
from console.base.accounts.models import Project
from console.base.accounts.models.project import DEFAULT_NAME
from console.base.accounts.signals import project_deleting
from console.base.common import locks
from console.base.common.actor import Actor, Permission
from console.base.common.audit import changes_of, record_audit
from console.base.common.clock import now
from console.base.common.errors import FieldError
from console.base.common.names import require_free_name
from console.base.limits.services import require_room


def create_project(*, actor: Actor, name: str, labels: Mapping[str, str] | None = None) -> Project:
    """Creates a project. Raises `NameTaken`, `LimitReached`."""
    locks.lock("projects", actor.organization_id)
    used = projects_used(actor.organization_id)
    require_room("projects", organization_id=actor.organization_id, used=used)
    _require_free_name(actor.organization_id, name)
    project = Project.objects.create(
        organization_id=actor.organization_id, name=name, labels=dict(labels or {})
    )
    _audit_project(actor, project, "project.create", {"name": name})
    return project


def create_default_project(*, actor: Actor) -> Project:
    """Creates a new organization's default project, where clusters go that name no project."""
    project = Project.objects.create(
        organization_id=actor.organization_id, name=DEFAULT_NAME, is_default=True
    )
    _audit_project(actor, project, "project.create", {"name": DEFAULT_NAME})
    return project


def update_project(*, actor: Actor, project: Project, changes: Mapping[str, Any]) -> Project:
    """Changes name or labels of a row that the caller has locked. Raises `NameTaken`."""
    changed = {name: value for name, value in changes.items() if getattr(project, name) != value}
    if not changed:
        return project
    if "name" in changed:
        locks.lock("projects", project.organization_id)
        _require_free_name(project.organization_id, changed["name"])
    detail = changes_of(project, changed)
    for name, value in changed.items():
        setattr(project, name, value)
    project.generation += 1
    project.save(update_fields=[*changed, "generation"])
    _audit_project(actor, project, "project.update", detail)
    return project


def delete_project(*, actor: Actor, project: Project) -> None:
    """Deletes a project whose row the caller has locked, and every role in it.

    Raises `DefaultProjectStays`, and what receivers of `project_deleting` raise, such as
    `ProjectNotEmpty`.
    """
    if project.is_default:
        raise DefaultProjectStays
    project_deleting.send(sender=Project, project=project)
    project.role_bindings.all().delete()
    project.deleted_at = now()
    project.save(update_fields=["deleted_at"])
    _audit_project(actor, project, "project.delete", {"name": project.name})


def projects_used(organization_id: str, cluster_id: str = "") -> int:
    """Counts projects. `cluster_id` is ignored."""
    return Project.objects.for_organization(organization_id).current().count()


def project_for(*, actor: Actor, project_id: str | None) -> Project:
    """Returns the project that something is to be added to, or the default one without an id.

    Its row is locked until the transaction ends. Raises `ProjectForbidden` if the actor lacks
    `WRITE` in it, and `UnknownProject` if there is none or the actor may not even see it.
    """
    projects = Project.objects.for_organization(actor.organization_id).current()
    matches = (
        projects.filter(is_default=True) if project_id is None else projects.filter(pk=project_id)
    )
    # Whoever deletes it runs before us, and we do not find it, or after us, and finds what we add.
    project = matches.select_for_update(no_key=True).first()
    if project is None or (project_id is not None and not actor.may(Permission.READ, project.pk)):
        raise UnknownProject(
            errors=[FieldError("/project_id", "unknown_project", UnknownProject.title)]
        )
    if not actor.may(Permission.WRITE, project.pk):
        raise ProjectForbidden(
            "The role in the default project does not allow it: name another project."
            if project_id is None
            else "The role in this project does not allow it.",
            errors=[FieldError("/project_id", "project_forbidden", ProjectForbidden.title)],
        )
    return project


def _require_free_name(organization_id: str, name: str) -> None:
    current = Project.objects.for_organization(organization_id).current()
    require_free_name(current, name, "A project of this organization")


def _audit_project(
    actor: Actor, project: Project, action: str, detail: Mapping[str, object]
) -> None:
    record_audit(
        actor=actor, action=action, target_type="project", target_id=project.pk, detail=detail
    )
