"""Tables that every application shares: audit, idempotency, outbox."""

from console.common.models.audit import AuditEntry
from console.common.models.idempotency import IdempotencyRecord
from console.common.models.outbox import OutboxEntry

__all__ = ["AuditEntry", "IdempotencyRecord", "OutboxEntry"]
