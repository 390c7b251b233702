"""Writes the audit log. Services call it in the transaction of the change.

A change of a cluster is made in its cell. The entry is then written at the end of the request,
together with the answer that is kept for a repetition, and the request may wait meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from console.base.common.actor import Actor
from console.base.common.models import AuditEntry
from console.base.common.models.audit import TARGET_CHARS_MAX
from console.base.common.requests import current_request_id
from console.base.common.transactions import current_transaction
from console.base.runtime.texts import bounded_json, storable_short

# What an entry holds of a text that somebody chose, and of all of them: tenants fill the log.
DETAIL_TEXT_CHARS_MAX = 1_024
DETAIL_CHARS_MAX = 64 * 1024


def bounded_detail(detail: Mapping[str, object]) -> object:
    """The details of an entry, as the log holds them."""
    return bounded_json(detail, text_chars_max=DETAIL_TEXT_CHARS_MAX, chars_max=DETAIL_CHARS_MAX)


def record_audit(
    *,
    actor: Actor,
    action: str,
    target_type: str,
    target_id: str,
    detail: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Writes an entry. `action` is `<noun>.<verb>`; `detail` must not hold a secret.

    What changed is in `detail` as `changes_of` gives it.
    """
    entry = new_entry(
        actor=actor, action=action, target_type=target_type, target_id=target_id, detail=detail
    )
    request = current_transaction()
    if request is not None and request.defers_audit:
        request.deferred.append(partial(entry.save, force_insert=True))
    else:
        entry.save(force_insert=True)
    return entry


def change_of(old: object, new: object) -> dict[str, object]:
    """Returns how `detail` has a value that changed: as it was and as it is now.

    No secret may be in it. None stands for a value that was not set or is not set any more.
    """
    return {"from": _storable(old), "to": _storable(new)}


def changes_of(row: object, changes: Mapping[str, object]) -> dict[str, object]:
    """Returns, for `detail`, how values of a row are about to change (attribute → new value)."""
    return {name: change_of(getattr(row, name), value) for name, value in changes.items()}


def _storable(value: object) -> object:
    """Returns a value as JSON has it: times are texts in ISO 8601."""
    return value.isoformat() if isinstance(value, datetime) else value


def new_entry(
    *,
    actor: Actor,
    action: str,
    target_type: str,
    target_id: str,
    detail: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Returns an unsaved entry, for callers that write thousands at once."""
    return AuditEntry(
        organization_id=actor.organization_id,
        action=action,
        actor_kind=actor.kind,
        actor_id=actor.id,
        target_type=target_type,
        target_id=storable_short(target_id, TARGET_CHARS_MAX),
        request_id=current_request_id(),
        address=actor.address,
        detail=bounded_detail(detail or {}),
    )
