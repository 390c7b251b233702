"""Querysets of accounts. A method narrows to one organization unless its name says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Q

from console.base.accounts.choices import InvitationState
from console.base.common.clock import now

if TYPE_CHECKING:
    from console.base.accounts.models import (  # noqa: F401
        ApiKey,
        Invitation,
        Membership,
        Organization,
        Project,
        RoleBinding,
        ServiceAccount,
        TrafficLimit,
    )


class OrganizationQuerySet(models.QuerySet["Organization"]):
    """Organizations."""

    def for_organization(self, organization_id: str) -> Self:
        """The organization of this id."""
        return self.filter(pk=organization_id)


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Memberships."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)


class TrafficLimitQuerySet(models.QuerySet["TrafficLimit"]):
    """Limits of traffic."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)


class ProjectQuerySet(models.QuerySet["Project"]):
    """Projects."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those that were not deleted."""
        return self.filter(deleted_at=None)


class RoleBindingQuerySet(models.QuerySet["RoleBinding"]):
    """Roles in projects."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def of_principal(self, principal_id: str) -> Self:
        """Those of a user or a service account."""
        return self.filter(Q(membership__user=principal_id) | Q(service_account=principal_id))


class ServiceAccountQuerySet(models.QuerySet["ServiceAccount"]):
    """Service accounts."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those that were not deleted; they may be disabled."""
        return self.filter(deleted_at=None)


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Invitations."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def open(self) -> Self:
        """Those that can be accepted now."""
        return self.filter(state=InvitationState.PENDING, expires_at__gt=now())


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organization."""
        return self.filter(organization_id=organization_id)

    def not_revoked(self) -> Self:
        """Those that were not revoked; they may have expired."""
        return self.filter(revoked_at=None)

    def usable(self) -> Self:
        """Those that authenticate now."""
        return self.unexpired().filter(
            Q(service_account=None)
            | Q(service_account__disabled=False, service_account__deleted_at=None)
        )

    def unexpired(self) -> Self:
        """Those that authenticate now, unless their service account is disabled."""
        return self.not_revoked().filter(Q(expires_at=None) | Q(expires_at__gt=now()))
