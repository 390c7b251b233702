"""Periodic Celery tasks of the tables that every application shares."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore

from console.base.common import idempotency, locks, outbox


@shared_task(name="common.sweep_outbox")
def sweep_outbox() -> None:
    """Hands over outbox entries that were not handed over after their commit."""
    outbox.sweep_outbox()


@shared_task(name="common.purge_expired")
def purge_expired() -> None:
    """Deletes idempotency records that are older than a day, and locks of requests that died."""
    idempotency.purge_expired()
    locks.purge_held()


@shared_task(name="common.clear_sessions")
def clear_sessions() -> None:
    """Deletes expired rows of Django's session table."""
    SessionStore.clear_expired()
