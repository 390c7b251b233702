"""Tables that every application shares: audit, idempotency, outbox, locks of requests."""

from console.base.common.models.audit import AuditEntry
from console.base.common.models.held_lock import HeldLock
from console.base.common.models.idempotency import IdempotencyRecord
from console.base.common.models.outbox import OutboxEntry

__all__ = ["AuditEntry", "HeldLock", "IdempotencyRecord", "OutboxEntry"]
