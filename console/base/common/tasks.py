"""Periodic Celery tasks of the tables that every application shares."""

from __future__ import annotations

from celery import Task, shared_task
from django.contrib.sessions.backends.db import SessionStore

from console.base.common import idempotency, locks, outbox, queued


@shared_task(name="common.sweep_outbox")
def sweep_outbox() -> None:
    """Hands over outbox entries that were not handed over after their commit, and has tasks done
    that wait although it is their turn.
    """
    outbox.sweep_outbox()
    queued.sweep_waiting()


@shared_task(bind=True, name=queued.NEXT_TASK)
def run_waiting(self: Task[..., None]) -> None:
    """Does the task of an organization whose turn it is."""
    queued.run_waiting(message=str(self.request.id or ""))


@shared_task(name="common.purge_expired")
def purge_expired() -> None:
    """Deletes idempotency records that are older than a day, and locks of requests that died."""
    idempotency.purge_expired()
    locks.purge_held()


@shared_task(name="common.clear_sessions")
def clear_sessions() -> None:
    """Deletes expired rows of Django's session table."""
    SessionStore.clear_expired()
