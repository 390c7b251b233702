"""The periodic look at all alerts. Safe to repeat, to lose and to run twice at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import DatabaseError, transaction

from console.alerts.choices import AlertState
from console.alerts.models import Alert
from console.alerts.models.alert import GROUP_CHARS_MAX
from console.alerts.rules import Evaluation, Reading, judge
from console.alerts.services.mails import enqueue_mail
from console.alerts.services.readings import read_figures
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope
from provisioning.choices import Intent

logger = logging.getLogger(__name__)

SEEN = (
    *("state", "changed_at", "fired_at", "contrary_since"),
    *("evaluated_at", "value", "subject"),
)


def evaluate_alerts() -> int:
    """Looks at every alert of clusters that are there; gives how many fired or ended.

    Nothing is done where another worker is at it.
    """
    at = now()
    with system_scope():
        if not locks.try_lock("alerts", "sweep"):
            return 0
        # Whoever changes one at this moment has it judged at the next look.
        rows = Alert.objects.filter(cluster__intent=Intent.ACTIVE).order_by("pk")
        alerts = list(rows.select_for_update(of=("self",), skip_locked=True))
        figures = read_figures(alerts, at)
        turned: list[Alert] = []
        others: list[Alert] = []
        for alert in alerts:
            (turned if _apply(alert, figures.get(alert.pk), at) else others).append(alert)
        _save(others)
        return sum(_turn(alert) for alert in turned)


def _apply(alert: Alert, reading: Reading | None, at: datetime) -> bool:
    """Judges one; tells whether it fired or ended."""
    before = Evaluation(AlertState(alert.state), alert.changed_at, alert.contrary_since)
    value = None if reading is None else reading.value
    after = judge(before, value, threshold=alert.threshold, for_s=alert.for_s, at=at)
    alert.state, alert.changed_at = after.state.value, after.changed_at
    alert.contrary_since = after.contrary_since
    alert.evaluated_at, alert.value = at, value
    alert.subject = "" if reading is None else _stored(reading.subject)
    turned = after.state is not before.state
    if turned and after.state is AlertState.FIRING:
        alert.fired_at = at
    return turned


def _stored(group: str) -> str:
    """A group's name as a column takes it: its beginning, and no NUL. Kafka allows both."""
    return group.replace("\0", "\N{REPLACEMENT CHARACTER}")[:GROUP_CHARS_MAX]


def _save(alerts: Sequence[Alert]) -> None:
    """Writes the looks at alerts; one that PostgreSQL does not take stays as it was."""
    try:
        with transaction.atomic():
            Alert.objects.bulk_update(alerts, SEEN, batch_size=500)
    except (DatabaseError, ValueError):
        for alert in alerts:
            _save_apart(alert)


def _turn(alert: Alert) -> bool:
    """Writes that an alert fired or ended, and tells of it; tells whether it could."""
    return _save_apart(alert, then=_tell)


def _save_apart(alert: Alert, then: Callable[[Alert], None] = lambda alert: None) -> bool:
    """Writes one look in a savepoint of its own; tells whether it could."""
    try:
        with transaction.atomic():
            alert.save(update_fields=SEEN)
            then(alert)
    except Exception:
        # One alert must not keep those of other organisations from being judged.
        logger.exception("alert.failed", extra={"alert": alert.pk})
        return False
    return True


def _tell(alert: Alert) -> None:
    firing = alert.state == AlertState.FIRING.value
    logger.info("alert.%s", alert.state, extra={"alert": alert.pk})
    with organization_scope(alert.organization_id):
        record_audit(
            actor=system_actor(alert.organization_id),
            action="alert.fire" if firing else "alert.end",
            target_type="alert",
            target_id=alert.pk,
            detail={"name": alert.name, "value": alert.value, "threshold": alert.threshold},
        )
        enqueue_mail(alert)
