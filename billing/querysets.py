"""Reads of billing, always within an organisation but where a name says otherwise."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from billing.models import PriceVersion


class PriceVersionQuerySet(models.QuerySet["PriceVersion"]):
    """Versions of the prices, which are nobody's own."""

    def in_force(self, month: date) -> PriceVersion:
        """The version that prices a month. There is one for every month since 2020."""
        found = self.prefetch_related("prices").filter(valid_from__lte=month)
        return found.order_by("-valid_from")[:1].get()
