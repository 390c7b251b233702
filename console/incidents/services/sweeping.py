"""Opens and closes incidents as the rules decide. Nothing else writes incidents.

A sweep may be repeated, and may overlap with another one.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import assert_never

from django.db import transaction

from console.base.common import locks
from console.base.common.clock import now
from console.base.common.tenancy import system_scope
from console.base.common.transactions import task_transaction
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
    decide_changes,
    find_problems,
)
from console.incidents.services.facts import gather_facts
from console.incidents.services.mails import enqueue_mail

logger = logging.getLogger(__name__)

# Of an incident with more updates than this only the latest are kept.
UPDATES_MAX = 50


def sweep_incidents() -> int:
    """Opens, updates and closes incidents; returns how many changed.

    Does nothing and returns 0 where another worker is sweeping at this moment.
    """
    at = now()
    with task_transaction(), system_scope():
        if not locks.try_lock("incidents", "sweep"):
            return 0
        facts = gather_facts(at)
        changes_due = decide_changes(
            find_problems(facts),
            _known_incidents(at),
            at=at,
            certainty=facts.certainty,
        )
        return sum(_make_change_apart(change, at) for change in changes_due)


def _known_incidents(at: datetime) -> list[Known]:
    """Returns the incidents that are not closed, or were closed less than `SAME_STORY` ago."""
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


def _make_change_apart(change: Change, at: datetime) -> bool:
    """Makes one change in a savepoint of its own; returns whether that succeeded."""
    try:
        with transaction.atomic():
            _make_change(change, at)
    except Exception:
        # A change that PostgreSQL refuses must not undo those of other organizations.
        logger.exception("incident.failed", extra={"change": repr(change)})
        return False
    return True


def _make_change(change: Change, at: datetime) -> None:
    match change:
        case Begin():
            _begin_incident(change, at)
        case Advance():
            _advance_incident(change, at)
        case Forget():
            Incident.objects.filter(pk=change.id, state=IncidentState.SUSPECTED).delete()
        case _:
            assert_never(change)


def _begin_incident(change: Begin, at: datetime) -> None:
    finding = change.finding
    incident = Incident.objects.create(
        organization_id=finding.organization_id,
        cluster_id=finding.cluster_id,
        kind=finding.kind,
        subject=finding.subject,
        state=change.state,
        title=finding.title[:TITLE_CHARS_MAX],
        updates=[_update_entry(at, finding.text)],
        opened_at=at,
    )
    if change.state is IncidentState.OPEN:
        _announce(incident)


def _advance_incident(change: Advance, at: datetime) -> None:
    incident = Incident.objects.select_for_update().get(pk=change.id)
    before = incident.state
    incident.state = change.state
    incident.closed_at = at if change.state is IncidentState.CLOSED else None
    if not incident.updates or incident.updates[-1]["text"] != change.text:
        incident.updates = [*incident.updates, _update_entry(at, change.text)][-UPDATES_MAX:]
    incident.save(update_fields=["state", "closed_at", "updates"])
    # A mail when it opens and when it closes; none when it opens again, which is the same fault.
    if before == IncidentState.SUSPECTED or change.state is IncidentState.CLOSED:
        _announce(incident)


def _update_entry(at: datetime, text: str) -> dict[str, str]:
    return {"at": at.isoformat().replace("+00:00", "Z"), "text": text}


def _announce(incident: Incident) -> None:
    """Logs the state of an incident and has its mail sent."""
    logger.warning(
        "incident.%s", incident.state, extra={"incident": incident.pk, "kind": incident.kind}
    )
    enqueue_mail(incident)
