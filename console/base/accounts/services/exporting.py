"""Exports an organization's archive, with audit entries for its beginning and its end.

The archive is read while it is sent, so a request that was answered with 200 may still fail. The
first entry is committed before the first byte leaves, so that nobody takes data without one; a
second entry says whether the export succeeded or failed. It is missing only if the process died.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from asgiref.sync import sync_to_async
from django.db import connection

from console.base.common.actor import Actor
from console.base.common.audit import record_audit
from console.base.common.errors import AppError, PlatformError
from console.base.common.exports import export_archive
from console.base.common.requests import current_request_id, in_request
from console.base.common.tenancy import organization_scope

STARTED = "organization.export_started"
EXPORTED = "organization.export"
FAILED = "organization.export_failed"
# The reason of an export whose client went away, or during which the server was stopped.
INTERRUPTED = "interrupted"


def export_organization(*, actor: Actor) -> AsyncGenerator[bytes, None]:
    """Yields the bytes of the ZIP archive of the actor's organization.

    Iteration raises whatever reading the archive raises, except `PlatformError` in place of
    `TypeError`.
    """
    # The request's id is read now: the iteration happens after the request, outside its context.
    return _archive_parts(actor, current_request_id())


async def _archive_parts(actor: Actor, request_id: str) -> AsyncGenerator[bytes, None]:
    try:
        await _write_entry(actor, request_id, STARTED)
        async for part in export_archive(actor.organization_id):
            yield part
    except BaseException as error:
        # `BaseException`: a client that went away shows as `GeneratorExit`, or as cancellation.
        await _write_entry(actor, request_id, FAILED, _reason_of(error))
        if isinstance(error, TypeError):
            # Django takes a `TypeError` to mean that this is a synchronous iterator, and hides it.
            raise PlatformError from error
        raise
    await _write_entry(actor, request_id, EXPORTED)


def _reason_of(error: BaseException) -> str:
    """Returns a code for the audit log, not the error's text, which may quote rows."""
    if isinstance(error, AppError):
        return error.code
    return PlatformError.code if isinstance(error, Exception) else INTERRUPTED


@sync_to_async
def _write_entry(actor: Actor, request_id: str, action: str, reason: str = "") -> None:
    """Writes an audit entry in a transaction of its own: the request's ended with its headers."""
    with in_request(request_id), organization_scope(actor.organization_id):
        record_audit(
            actor=actor,
            action=action,
            target_type="organization",
            target_id=actor.organization_id,
            detail={"reason": reason} if reason else None,
        )
    if not connection.in_atomic_block:
        # After the client went away this may run in a thread of its own, whose connection nobody
        # else returns to the pool.
        connection.close()
