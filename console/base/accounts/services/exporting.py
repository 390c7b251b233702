"""An organisation's archive as the audit log tells of it: begun, and then exported or failed.

The archive is read while it is sent, so a request that was answered with 200 may still fail. An
entry is there before the first byte leaves, so that nobody takes data along without one; a second
one tells how it ended. Only where the process dies meanwhile is there no second one.
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
# The reason of an export that its client gave up, or that the server's own end cut off.
INTERRUPTED = "interrupted"


def export_organization(*, actor: Actor) -> AsyncGenerator[bytes, None]:
    """The archive's parts, of the actor's organisation and within its scope.

    Whatever its reading raises, reading the parts raises; `PlatformError` for a `TypeError`.
    """
    return _parts(actor, current_request_id())


async def _parts(actor: Actor, request_id: str) -> AsyncGenerator[bytes, None]:
    try:
        await _write(actor, request_id, STARTED)
        async for part in export_archive(actor.organization_id):
            yield part
    except BaseException as error:
        # A client that is gone is a `GeneratorExit`, or the cancellation of its request.
        await _write(actor, request_id, FAILED, _reason(error))
        if isinstance(error, TypeError):
            # Django takes one for the sign of a synchronous iterator, and raises another instead.
            raise PlatformError from error
        raise
    await _write(actor, request_id, EXPORTED)


def _reason(error: BaseException) -> str:
    """A code, as the error itself may quote rows."""
    if isinstance(error, AppError):
        return error.code
    return PlatformError.code if isinstance(error, Exception) else INTERRUPTED


@sync_to_async
def _write(actor: Actor, request_id: str, action: str, reason: str = "") -> None:
    """Writes an entry in a transaction of its own: the request's ended with its answer."""
    with in_request(request_id), organization_scope(actor.organization_id):
        record_audit(
            actor=actor,
            action=action,
            target_type="organization",
            target_id=actor.organization_id,
            detail={"reason": reason} if reason else None,
        )
    if not connection.in_atomic_block:
        # Once the client is gone this may be a thread of its own, whose connection nobody else
        # gives back to the pool.
        connection.close()
