"""Uses credit for what is open: what customers paid too much, and what they were granted.

After each event this is done, so no organization has credit and an open receivable of one currency.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from billing.choices import EntryKind, SettlementKind
from billing.models import Credit, Payment, Receivable
from billing.receivables.event import MoneyEvent, Source


def apply_credit(*, organization_id: str, currency: str, source_id: str, at: datetime) -> int:
    """Uses the organization's credit, oldest first, for its open receivables, oldest first.

    `source_id` is the id of the event after which it is done. The organization must be locked.
    Returns the amount that was used, in minor units.
    """
    sources = sources_of([organization_id], currency)
    if not sources:
        return 0
    rows = Receivable.objects.for_organization(organization_id).open().filter(currency=currency)
    receivables = list(rows.oldest_first())
    event = MoneyEvent(
        EntryKind.CREDIT_APPLIED,
        organization_id=organization_id,
        source_id=source_id,
        currency=currency,
        at=at,
    )
    kind = SettlementKind.CREDIT
    used = sum(settle_open(event, kind, receivables, source) for source in sources)
    if used:
        event.write()
    return used


def settle_open(
    event: MoneyEvent, kind: SettlementKind, receivables: Iterable[Receivable], source: Source
) -> int:
    """Settles receivables, in their order, with what a source has left; returns how much."""
    used = 0
    for receivable in receivables:
        amount = min(receivable.open_minor, source.unapplied_minor)
        if amount:
            event.settle(receivable, kind, amount, source)
            used += amount
    return used


def sources_of(organization_ids: Iterable[str], currency: str) -> list[Payment | Credit]:
    """What organizations have as credit, oldest first."""
    ids = list(organization_ids)
    rows = [
        source
        for kind in (Payment, Credit)
        for source in kind.objects.filter(
            organization_id__in=ids, currency=currency, unapplied_minor__gt=0
        )
    ]
    return sorted(rows, key=lambda source: (source.created_at, source.pk))
