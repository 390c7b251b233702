"""Errors of collection that the API answers. Codes never change."""

from __future__ import annotations

from console.base.common.errors import Conflict


class CollectorOff(Conflict):
    """The service does not charge cards (`billing.collector`)."""

    code = "cards_not_taken"
    title = "Cards are not taken here"


class NoCard(Conflict):
    """The organization has given no card."""

    code = "no_payment_method"
    title = "There is no payment method"


class BelowMinimum(Conflict):
    """A card cannot be charged with so little; the next invoice is charged together with it."""

    code = "below_card_minimum"
    title = "The amount is too small for a card"


class PaymentInProgress(Conflict):
    """Another payment of the organization has not ended yet."""

    code = "payment_in_progress"
    title = "A payment is in progress"
