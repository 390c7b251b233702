"""Where invoices and the numbers that were used are kept."""

from __future__ import annotations

from console.common.conf import config
from metering.events.store import FolderUsageStore, UsageStore


def document_store() -> UsageStore:
    """The store that `billing.documents` names. Objects of it are never changed or removed."""
    return FolderUsageStore(config().billing.documents)
