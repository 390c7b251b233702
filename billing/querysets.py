"""Reads of billing, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Self

from django.db import models

if TYPE_CHECKING:
    from billing.models import Budget, PriceVersion  # noqa: F401


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    """Versions of the prices, which are nobody's own."""

    def in_force(self, month: date) -> PriceVersion:
        """The version that prices a month. There is one for every month since 2020."""
        found = self.prefetch_related("prices").filter(valid_from__lte=month)
        return found.order_by("-valid_from")[:1].get()


class BudgetQuerySet(models.QuerySet["Budget"]):
    """Budgets."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those that were not removed."""
        return self.filter(removed_at=None)
