"""Does what the rules say. The only writer of incidents; safe to repeat and to run twice."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import assert_never

from django.db import transaction

from console.base.common import locks
from console.base.common.clock import now
from console.base.common.tenancy import system_scope
from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.models import Incident
from console.incidents.models.incident import TITLE_CHARS_MAX
from console.incidents.rules import (
    SAME_STORY,
    Advance,
    Begin,
    Change,
    Forget,
    Known,
    changes,
    findings,
)
from console.incidents.services.facts import gather_facts
from console.incidents.services.mails import enqueue_mail

logger = logging.getLogger(__name__)

# A story that never ends keeps its latest part.
UPDATES_MAX = 50


def sweep_incidents() -> int:
    """Opens and closes what there is to; gives how many incidents changed.

    Nothing is done where another worker is at it.
    """
    at = now()
    with system_scope():
        if not locks.try_lock("incidents", "sweep"):
            return 0
        facts = gather_facts(at)
        made = changes(
            findings(facts),
            _known(at),
            at=at,
            cell_answers=facts.cell_answers,
            keeper_speaks=facts.keeper_speaks,
            size_known=facts.size_known,
        )
        return sum(_do_apart(change, at) for change in made)


def _known(at: datetime) -> list[Known]:
    rows = Incident.objects.exclude(state=IncidentState.CLOSED) | Incident.objects.filter(
        state=IncidentState.CLOSED, closed_at__gte=at - SAME_STORY
    )
    return [
        Known(
            id=row.pk,
            kind=IncidentKind(row.kind),
            subject=row.subject,
            state=IncidentState(row.state),
            since=row.closed_at or row.opened_at,
            text=row.updates[-1]["text"] if row.updates else "",
        )
        for row in rows
    ]


def _do_apart(change: Change, at: datetime) -> bool:
    """Does one change in a savepoint of its own; tells whether it could."""
    try:
        with transaction.atomic():
            _do(change, at)
    except Exception:
        # One that PostgreSQL does not take must not undo those of other organisations.
        logger.exception("incident.failed", extra={"change": repr(change)})
        return False
    return True


def _do(change: Change, at: datetime) -> None:
    match change:
        case Begin():
            _begin(change, at)
        case Advance():
            _advance(change, at)
        case Forget():
            Incident.objects.filter(pk=change.id, state=IncidentState.SUSPECTED).delete()
        case _:
            assert_never(change)


def _begin(change: Begin, at: datetime) -> None:
    found = change.finding
    incident = Incident.objects.create(
        organization_id=found.organization_id,
        cluster_id=found.cluster_id,
        kind=found.kind,
        subject=found.subject,
        state=change.state,
        title=found.title[:TITLE_CHARS_MAX],
        updates=[_update(at, found.text)],
        opened_at=at,
    )
    if change.state is IncidentState.OPEN:
        _told(incident)


def _advance(change: Advance, at: datetime) -> None:
    incident = Incident.objects.select_for_update().get(pk=change.id)
    before = incident.state
    incident.state = change.state
    incident.closed_at = at if change.state is IncidentState.CLOSED else None
    if not incident.updates or incident.updates[-1]["text"] != change.text:
        incident.updates = [*incident.updates, _update(at, change.text)][-UPDATES_MAX:]
    incident.save(update_fields=["state", "closed_at", "updates"])
    # Who was told of its beginning hears of its end; what comes back is the same story.
    if before == IncidentState.SUSPECTED or change.state is IncidentState.CLOSED:
        _told(incident)


def _update(at: datetime, text: str) -> dict[str, str]:
    return {"at": at.isoformat().replace("+00:00", "Z"), "text": text}


def _told(incident: Incident) -> None:
    logger.warning(
        "incident.%s", incident.state, extra={"incident": incident.pk, "kind": incident.kind}
    )
    enqueue_mail(incident)
