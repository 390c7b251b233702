"""Judges all alerts, once a minute. A run may be repeated, lost, or overlap with another one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import DatabaseError, transaction

from console.alerts.choices import AlertState
from console.alerts.models import Alert
from console.alerts.models.alert import SUBJECT_CHARS_MAX
from console.alerts.rules import Evaluation, Reading, judge_figure
from console.alerts.services.mails import enqueue_mail
from console.alerts.services.readings import read_figures
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import task_transaction
from console.base.runtime.texts import storable
from provisioning.choices import Intent

logger = logging.getLogger(__name__)

SEEN = (
    *("state", "changed_at", "fired_at", "beyond_since", "back_since"),
    *("evaluated_at", "value", "subject", "fired_subject"),
)


def evaluate_alerts() -> int:
    """Judges the alerts of all active clusters; returns how many of them fired or ended.

    Does nothing and returns 0 where another worker is judging them at this moment.
    """
    at = now()
    with task_transaction(), system_scope():
        if not locks.try_lock("alerts", "sweep"):
            return 0
        rows = Alert.objects.filter(cluster__intent=Intent.ACTIVE).order_by("pk")
        watched = {alert.pk: alert for alert in rows}
        figures = read_figures(watched.values(), at)
        turned: list[Alert] = []
        others: list[Alert] = []
        # An alert that somebody is changing is locked, and the figure of one that was changed since
        # may be another one: both are skipped, and judged a minute later.
        for alert in rows.select_for_update(of=("self",), skip_locked=True):
            if alert.pk not in watched or _figure_of(alert) != _figure_of(watched[alert.pk]):
                continue
            (turned if _judge_alert(alert, figures.get(alert.pk), at) else others).append(alert)
        _save_looks(others)
        return sum(_save_turn(alert) for alert in turned)


def _figure_of(alert: Alert) -> tuple[str, str, str]:
    """Which figure an alert watches."""
    return alert.cluster_id, alert.kind, alert.group


def _judge_alert(alert: Alert, reading: Reading | None, at: datetime) -> bool:
    """Writes the new evaluation into the alert, unsaved; returns whether it fired or ended."""
    before = Evaluation(
        AlertState(alert.state), alert.changed_at, alert.beyond_since, alert.back_since
    )
    value = None if reading is None else reading.value
    after = judge_figure(before, value, threshold=alert.threshold, for_s=alert.for_s, at=at)
    alert.state, alert.changed_at = after.state.value, after.changed_at
    alert.beyond_since, alert.back_since = after.beyond_since, after.back_since
    alert.evaluated_at, alert.value = at, value
    alert.subject = "" if reading is None else storable(reading.subject)[:SUBJECT_CHARS_MAX]
    fires, fired = (state is AlertState.FIRING for state in (after.state, before.state))
    if fires and not fired:
        alert.fired_at, alert.fired_subject = at, alert.subject
    return fires is not fired


def _save_looks(alerts: Sequence[Alert]) -> None:
    """Saves the evaluations of alerts; an alert that PostgreSQL refuses stays as it was.

    All are saved in one statement. Where that fails, one after the other, to find the refused one.
    """
    try:
        with transaction.atomic():
            Alert.objects.bulk_update(alerts, SEEN, batch_size=500)
    except (DatabaseError, ValueError):
        for alert in alerts:
            _save_apart(alert)


def _save_turn(alert: Alert) -> bool:
    """Saves an alert that fired or ended and announces it in the same transaction.

    Returns whether that succeeded.
    """
    return _save_apart(alert, then=_announce)


def _save_apart(alert: Alert, then: Callable[[Alert], None] = lambda alert: None) -> bool:
    """Saves one alert and calls `then`, in a savepoint of its own; returns whether it succeeded."""
    try:
        with transaction.atomic():
            alert.save(update_fields=SEEN)
            then(alert)
    except Exception:
        # One alert that fails must not stop the alerts of other organizations.
        logger.exception("alert.failed", extra={"alert": alert.pk})
        return False
    return True


def _announce(alert: Alert) -> None:
    """Logs that an alert fired or ended, records it in the audit log, and has a mail sent."""
    firing = alert.state == AlertState.FIRING.value
    logger.info("alert.%s", alert.state, extra={"alert": alert.pk})
    with organization_scope(alert.organization_id):
        record_audit(
            actor=system_actor(alert.organization_id),
            action="alert.fire" if firing else "alert.end",
            target_type="alert",
            target_id=alert.pk,
            detail={
                "name": alert.name,
                "kind": alert.kind,
                "subject": alert.fired_subject,
                "value": alert.value,
                "threshold": alert.threshold,
                "since": alert.beyond_since.isoformat() if alert.beyond_since else None,
            },
        )
        enqueue_mail(alert)
