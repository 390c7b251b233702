"""Runs a POST with an `Idempotency-Key` once, however often it is sent.

The answer is stored in the transaction of the change itself, so there is never one without the
other, and nothing is stored of a request that failed half-way. While the first request runs, a
second one does not get the advisory lock, and is answered 409. Only successes are stored: a refused
request changed nothing, and may be sent again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from console.base.common import locks, sealing
from console.base.common.clock import now
from console.base.common.errors import Conflict, FieldError, UserError, ValidationFailed
from console.base.common.models import IdempotencyRecord
from console.base.common.tenancy import system_scope

HEADER = "Idempotency-Key"
KEY_CHARS_MAX = 255
KEPT = timedelta(hours=24)


class RequestInProgress(Conflict):
    """The first request with this key is still running."""

    code = "idempotency_request_in_progress"
    title = "A request with this Idempotency-Key is running"


class KeyReused(UserError):
    """The key was used for another request."""

    code = "idempotency_key_reused"
    status = 422
    title = "This Idempotency-Key was used with another request"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer of the first request: status, JSON body, and the headers that are repeated."""

    status: int
    body: object
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request with a key that this process is to run; the lock keeps others from running it."""

    id: str
    key: str
    organization_id: str
    request_digest: str


def begin_attempt(
    *, organization_id: str, actor: str, path: str, key: str, body: bytes
) -> Attempt | StoredAnswer:
    """Returns the stored answer of an earlier request, or the attempt to run this one.

    Holds a lock until the transaction ends. Raises `RequestInProgress`, `KeyReused` if the stored
    request had another body, and `ValidationFailed` for a malformed key.
    """
    if not 0 < len(key) <= KEY_CHARS_MAX or not key.isprintable():
        detail = f"An Idempotency-Key has 1 to {KEY_CHARS_MAX} printable characters."
        raise ValidationFailed(
            detail, errors=[FieldError("/headers/Idempotency-Key", "invalid", detail)]
        )
    record_id = sealing.digest("idempotency", organization_id, actor, path, key)
    request_digest = sealing.digest("request", key, body)
    if not locks.try_lock("idempotency", record_id):
        raise RequestInProgress(retry_after_s=1)
    record = IdempotencyRecord.objects.filter(
        pk=record_id, organization_id=organization_id, created_at__gt=now() - KEPT
    ).first()
    if record is None:
        return Attempt(record_id, key, organization_id, request_digest)
    if record.request_digest != request_digest:
        raise KeyReused
    stored = json.loads(sealing.unseal(bytes(record.sealed_answer), key))
    return StoredAnswer(status=record.status, body=stored["body"], headers=stored["headers"])


def finish_attempt(attempt: Attempt, *, status: int, body: bytes, headers: dict[str, str]) -> None:
    """Stores the answer in the transaction of the change. `body` is JSON, or empty for null."""
    answer = b'{"headers":%b,"body":%b}' % (json.dumps(headers).encode(), body or b"null")
    IdempotencyRecord.objects.update_or_create(
        pk=attempt.id,
        organization_id=attempt.organization_id,
        defaults={
            "request_digest": attempt.request_digest,
            "status": status,
            "sealed_answer": sealing.seal(answer, attempt.key),
            "created_at": now(),
        },
    )


def purge_expired() -> int:
    """Deletes stored answers that are older than a day; returns how many."""
    with system_scope():
        deleted, _ = IdempotencyRecord.objects.filter(created_at__lt=now() - KEPT).delete()
    return deleted
