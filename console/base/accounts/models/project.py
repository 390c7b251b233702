"""Projects, and who has which role in them."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.base.accounts.choices import ROLES, PrincipalType
from console.base.accounts.models.organization import Membership, Organization
from console.base.accounts.models.service_account import ServiceAccount
from console.base.accounts.querysets import ProjectQuerySet, RoleBindingQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

NAME_CHARS_MAX = 100
DEFAULT_NAME = "Default"


class Project(models.Model):
    """A part of an organization's clusters, where people have roles of their own."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "prj"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="projects"
    )
    name = models.CharField(max_length=NAME_CHARS_MAX)
    labels = models.JSONField(default=dict)
    # Whether clusters go here that name no project. Every organization has one, which stays.
    is_default = models.BooleanField(default=False)
    # Counts changes; the ETag is made from it.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    # The row of a deleted project stays: usage of its purged clusters refers to it.
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "name"],
                condition=Q(deleted_at=None),
                name="one_project_a_name",
            ),
            models.UniqueConstraint(
                fields=["organization"],
                condition=Q(is_default=True),
                name="one_default_project",
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(deleted_at=None), name="default_project_stays"
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="projects_newest"),
        )

    def __str__(self) -> str:
        return self.name


class RoleBinding(models.Model):
    """A role in a project, of a member or of a service account; it is deleted with either."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rb"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="role_bindings"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="role_bindings")
    membership = models.ForeignKey(
        Membership, null=True, blank=True, on_delete=models.CASCADE, related_name="role_bindings"
    )
    service_account = models.ForeignKey(
        ServiceAccount,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="role_bindings",
    )
    role = models.CharField(max_length=16, choices=ROLES)
    created_at = models.DateTimeField(default=now)

    objects = RoleBindingQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(membership=None) ^ Q(service_account=None), name="one_principal"
            ),
            models.UniqueConstraint(
                fields=["project", "membership", "role"], name="one_binding_a_member"
            ),
            models.UniqueConstraint(
                fields=["project", "service_account", "role"],
                name="one_binding_a_service_account",
            ),
        )
        indexes = (
            models.Index(
                fields=["organization", "-created_at", "-id"], name="role_bindings_newest"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} in {self.project_id}"

    @property
    def principal_type(self) -> str:
        """What kind of principal has the role."""
        return PrincipalType.USER if self.membership_id else PrincipalType.SERVICE_ACCOUNT

    @property
    def principal_id(self) -> str:
        """The user's or the service account's id."""
        if self.membership is not None:
            return self.membership.user_id
        return str(self.service_account_id)
