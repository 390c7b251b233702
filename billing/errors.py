"""Errors of billing. Codes never change."""

from __future__ import annotations

from console.base.common.errors import Conflict, PlatformError, UserError


class MonthOpen(Conflict):
    """Usage of the month can still arrive, or is incomplete. Closing early needs a reason."""

    code = "month_open"
    title = "The month cannot be invoiced yet"


class UsageChanged(Conflict):
    """A roll-up was published while its month was being read, several times in a row."""

    code = "usage_changed"
    title = "Usage of the month is being published"


class NotIssued(Conflict):
    """Only an issued invoice has a PDF and an evidence pack, or can be taken back."""

    code = "not_issued"
    title = "The invoice is not issued"


class AlreadyVoid(Conflict):
    """The invoice was taken back before, or it is a credit note, which is never taken back."""

    code = "already_void"
    title = "The invoice cannot be taken back"


class PaymentConflict(Conflict):
    """A payment, refund, credit or dispute of the same id was entered with other values."""

    code = "payment_conflict"
    title = "It was entered before, with other values"


class RefundTooLarge(Conflict):
    """More is to be given back, or is disputed, than is left of the payment."""

    code = "refund_too_large"
    title = "More than what is left of the payment"


class NothingOpen(Conflict):
    """The invoice is paid or void, so nothing of it can be written off."""

    code = "nothing_open"
    title = "Nothing of the invoice is open"


class DocumentPending(Conflict):
    """The PDF is still being made. The caller should repeat the request in some seconds."""

    code = "document_pending"
    title = "The document is being made"


class DocumentDamaged(PlatformError):
    """The object store lacks the PDF, or returns other bytes than were stored."""

    code = "document_damaged"
    title = "The stored document is damaged"


class DocumentRefersOutside(PlatformError):
    """The page of an invoice, or its style, names a file or an address to be fetched."""

    code = "document_refers_outside"
    title = "The document refers to something outside of it"


class NumbersDiverged(PlatformError):
    """Another database issues numbers of this series. No invoice is issued until a person has
    found out which database is the right one."""

    code = "numbers_diverged"
    title = "Another database uses the same numbers"


class UnknownOrganization(UserError):
    """There is no such organization, or it was created after the month."""

    code = "unknown_organization"
    status = 404
    title = "There is no such organization"
