"""Which payer organizations had in a month: the last one that they had in it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from django.db.models import Q, QuerySet

from billing.models import PayerOrganization
from billing.periods import next_month, starts_at


def payers_of_month(month: date, organization_ids: Collection[str]) -> dict[str, str]:
    """Organization → who paid for it last in a month; without those that had no payer in it."""
    links = _links_of_month(month).filter(organization_id__in=list(organization_ids))
    return dict(links.values_list("organization_id", "payer_id"))


def organizations_of_payers(month: date, payer_ids: Collection[str]) -> dict[str, list[str]]:
    """Payer → the organizations whose last payer of a month it is. Needs the system's scope."""
    candidates = _links_of_month(month).filter(
        organization_id__in=PayerOrganization.objects.filter(payer_id__in=payer_ids).values(
            "organization_id"
        )
    )
    groups: dict[str, list[str]] = {payer_id: [] for payer_id in payer_ids}
    for organization_id, payer_id in candidates.values_list("organization_id", "payer_id"):
        if payer_id in groups:
            groups[payer_id].append(organization_id)
    return groups


def free_before_payers(month: date, organization_ids: Collection[str]) -> dict[str, dict[str, int]]:
    """Organization → meter → what it used for nothing in a month before a payer came.

    Only of those who did.
    """
    links = PayerOrganization.objects.filter(
        organization_id__in=list(organization_ids),
        since__gte=starts_at(month),
        since__lt=starts_at(next_month(month)),
    ).exclude(free_before={})
    return {
        owner: {meter: int(quantity) for meter, quantity in free_before.items()}
        for owner, free_before in links.values_list("organization_id", "free_before")
    }


def _links_of_month(month: date) -> QuerySet[PayerOrganization]:
    """The last link of each organization that held in a month."""
    start, end = starts_at(month), starts_at(next_month(month))
    links = PayerOrganization.objects.filter(
        Q(until__isnull=True) | Q(until__gt=start), since__lt=end
    )
    return links.order_by("organization_id", "-since", "-id").distinct("organization_id")
