"""Errors of billing. Codes never change."""

from __future__ import annotations

from console.base.common.errors import Conflict, PlatformError, UserError


class MonthOpen(Conflict):
    """Usage of the month can still come in. Who closes it early says why."""

    code = "month_open"
    title = "The month cannot be invoiced yet"


class UsageChanged(Conflict):
    """A roll-up was published while its month was being read, several times in a row."""

    code = "usage_changed"
    title = "Usage of the month is being published"


class NotIssued(Conflict):
    """Only what is issued has a document, or can be taken back."""

    code = "not_issued"
    title = "The invoice is not issued"


class AlreadyVoid(Conflict):
    """An invoice is taken back once; a credit note never."""

    code = "already_void"
    title = "The invoice cannot be taken back"


class DocumentPending(Conflict):
    """The PDF is being made. Worth repeating soon."""

    code = "document_pending"
    title = "The document is being made"


class DocumentDamaged(PlatformError):
    """The object store has something else than what was stored."""

    code = "document_damaged"
    title = "The stored document is damaged"


class NumbersDiverged(PlatformError):
    """Another database gives out numbers of this series. Nothing is issued until a person looks."""

    code = "numbers_diverged"
    title = "Another database uses the same numbers"


class UnknownOrganization(UserError):
    """There is no such organisation, or it came after the month."""

    code = "unknown_organization"
    status = 404
    title = "There is no such organisation"
