"""The public face of receivables.

All functions take their arguments by name, and run in the caller's transaction and tenancy scope:
that of the organization, or the system's. They take their lock themselves: one of the organization,
so a caller that locks a payer does so before, and one that locks an invoice afterwards.
"""

from __future__ import annotations

from billing.receivables.balances import (
    Balance,
    PaidBy,
    balance_of,
    is_collected,
    open_of,
    payments_of,
    set_due_dates,
)
from billing.receivables.credits import grant_credit, write_off
from billing.receivables.currencies import require_currency
from billing.receivables.disputes import close_dispute, record_dispute
from billing.receivables.finding import find_receivable
from billing.receivables.opening import close_by_credit_note, due_on, open_receivables
from billing.receivables.payments import record_payment
from billing.receivables.references import parse_reference, readable_reference, reference_of
from billing.receivables.refunds import refund_payment, refundable_minor
from billing.receivables.terms import Terms, terms_of

__all__ = [
    "Balance",
    "PaidBy",
    "Terms",
    "balance_of",
    "close_by_credit_note",
    "close_dispute",
    "due_on",
    "find_receivable",
    "grant_credit",
    "is_collected",
    "open_of",
    "open_receivables",
    "parse_reference",
    "payments_of",
    "readable_reference",
    "record_dispute",
    "record_payment",
    "reference_of",
    "refund_payment",
    "refundable_minor",
    "require_currency",
    "set_due_dates",
    "terms_of",
    "write_off",
]
