"""Reads of metering's rows. They stay in the caller's tenancy scope."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models

from metering.choices import Granularity

if TYPE_CHECKING:
    from metering.models import RollupPointer, UsageRow  # noqa: F401


class RollupPointerQuerySet(models.QuerySet["RollupPointer"]):
    """Pointers to the runs of days."""

    def final(self) -> Self:
        """Those of days that were over when they were rolled up."""
        return self.filter(early=False)


class UsageRowQuerySet(models.QuerySet["UsageRow"]):
    """Rolled-up rows."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """The rows of runs that a pointer names, early ones included."""
        return self.filter(run__pointer__isnull=False)

    def days(self) -> Self:
        """The rows of whole days, not of hours."""
        return self.filter(granularity=Granularity.DAY)

    def billed(self) -> Self:
        """The rows that invoices count."""
        return self.filter(billed=True)

    def within(self, start: datetime, end: datetime) -> Self:
        """The rows whose windows begin in [start, end)."""
        return self.filter(window_start__gte=start, window_start__lt=end)
