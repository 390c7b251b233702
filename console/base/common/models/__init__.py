"""Tables that every application shares: audit, idempotency, outbox, waiting tasks, locks."""

from console.base.common.models.audit import AuditEntry
from console.base.common.models.held_lock import HeldLock
from console.base.common.models.idempotency import IdempotencyRecord
from console.base.common.models.outbox import OutboxEntry
from console.base.common.models.waiting_task import TaskTurn, WaitingTask

__all__ = [
    "AuditEntry",
    "HeldLock",
    "IdempotencyRecord",
    "OutboxEntry",
    "TaskTurn",
    "WaitingTask",
]
