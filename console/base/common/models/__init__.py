"""Tables that every application shares: audit, idempotency, outbox."""

from console.base.common.models.audit import AuditEntry
from console.base.common.models.idempotency import IdempotencyRecord
from console.base.common.models.outbox import OutboxEntry

__all__ = ["AuditEntry", "IdempotencyRecord", "OutboxEntry"]
