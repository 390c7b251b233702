"""Who changes what is owed: a member of staff, a command's user, or a part of the service."""

from __future__ import annotations

from collections.abc import Mapping

from billing.models.receivables import ENTERED_BY_CHARS_MAX
from console.base.common.actor import Actor, system_actor
from console.base.common.audit import record_audit

# A person with a session, or the name of who else did it.
By = Actor | str


def name_of(by: By) -> str:
    """The name that a row keeps."""
    return (by.name if isinstance(by, Actor) else by)[:ENTERED_BY_CHARS_MAX]


def audit_money(
    *,
    by: By,
    organization_id: str,
    action: str,
    target: tuple[str, str],
    detail: Mapping[str, object],
) -> None:
    """Writes the entry of the audit log. `target`: the type and the id of what was changed."""
    named = {} if isinstance(by, Actor) else {"by": by}
    record_audit(
        actor=by if isinstance(by, Actor) else system_actor(organization_id),
        action=action,
        target_type=target[0],
        target_id=target[1],
        detail={**detail, **named},
    )
