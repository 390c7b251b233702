"""The store of PDFs of invoices and of reservations of their numbers."""

from __future__ import annotations

from console.base.common.conf import config
from metering.events.store import UsageStore
from metering.services.waiting import waited_for
from metering.stores import open_usage_store


def document_store() -> UsageStore:
    """The store that `billing.documents` names. Objects of it are never changed or removed."""
    return waited_for(open_usage_store(config().billing.documents), "the store of documents")
