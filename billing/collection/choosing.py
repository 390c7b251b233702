"""Which invoices one attempt charges. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Their ids must have room in one value of Stripe's metadata, of 500 characters.
INVOICES_MAX = 15


@dataclass(frozen=True, slots=True)
class Owed:
    """What is open of an invoice.

    `is_due`: it is to be charged now, and does not wait for a day of the calendar.
    """

    invoice_id: str
    open_minor: int
    currency: str
    is_due: bool = True


def choose_invoices(owed: Sequence[Owed], minimum_minor: int) -> list[Owed]:
    """The invoices that the next attempt charges together; none where nothing can be charged.

    `owed` is in the order of age. The first due invoice that a card can be charged with is charged,
    with every small one of its currency. Small ones alone are charged once they add up.
    """
    due = [one for one in owed if one.is_due and one.open_minor > 0]
    large = next((one for one in due if one.open_minor >= minimum_minor), None)
    lead = large or next(iter(due), None)
    if lead is None:
        return []
    small = [
        one
        for one in due
        if one.open_minor < minimum_minor and one.currency == lead.currency and one is not lead
    ]
    # The greatest of them, so that what is charged is as much as can be.
    small = sorted(small, key=lambda one: -one.open_minor)[: INVOICES_MAX - 1]
    chosen = [lead, *small]
    return chosen if sum(one.open_minor for one in chosen) >= minimum_minor else []
