"""Reads of metering, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models

from metering.choices import Granularity

if TYPE_CHECKING:
    from metering.models import UsageRow  # noqa: F401


class UsageRowQuerySet(models.QuerySet["UsageRow"]):
    """Rolled-up rows."""

    def for_organization(self, organization_id: str) -> Self:
        """Those of one organisation."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Those of the runs that are their day's current ones."""
        return self.filter(run__pointer__isnull=False)

    def days(self) -> Self:
        """Rows of whole days."""
        return self.filter(granularity=Granularity.DAY)

    def billed(self) -> Self:
        """Those that invoices count."""
        return self.filter(billed=True)

    def within(self, start: datetime, end: datetime) -> Self:
        """Those whose windows begin in [start, end)."""
        return self.filter(window_start__gte=start, window_start__lt=end)
