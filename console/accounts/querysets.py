"""Reads of accounts, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models

from console.common.clock import now

if TYPE_CHECKING:
    from console.accounts.models import ApiKey, Membership, Organization  # noqa: F401


class OrganizationQuerySet(models.QuerySet["Organization"]):
    """Organisations."""

    def for_organization(self, organization_id: str) -> Self:
        """The one that the caller belongs to."""
        return self.filter(pk=organization_id)


class MembershipQuerySet(models.QuerySet["Membership"]):
    """Memberships."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def not_revoked(self) -> Self:
        """Those that were not revoked; they may have expired."""
        return self.filter(revoked_at=None)

    def usable(self) -> Self:
        """Those that authenticate now."""
        return self.not_revoked().filter(models.Q(expires_at=None) | models.Q(expires_at__gt=now()))
