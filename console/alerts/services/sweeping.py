"""The periodic look at all alerts. Safe to repeat, to lose and to run twice at a time."""

from __future__ import annotations

import logging
from datetime import datetime

from console.alerts.choices import AlertState
from console.alerts.models import Alert
from console.alerts.rules import Reading, Standing, judge
from console.alerts.services.mails import enqueue_mail
from console.alerts.services.readings import read_figures
from console.common import locks
from console.common.actor import system_actor
from console.common.audit import record_audit
from console.common.clock import now
from console.common.tenancy import organization_scope, system_scope
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
        turned = [each for each in alerts if _apply(each, figures.get(each.pk), at)]
        Alert.objects.bulk_update(alerts, SEEN, batch_size=500)
        for alert in turned:
            _tell(alert)
    return len(turned)


def _apply(alert: Alert, reading: Reading | None, at: datetime) -> bool:
    """Judges one; tells whether it fired or ended."""
    before = Standing(AlertState(alert.state), alert.changed_at, alert.contrary_since)
    value = None if reading is None else reading.value
    after = judge(before, value, threshold=alert.threshold, for_s=alert.for_s, at=at)
    alert.state, alert.changed_at = after.state.value, after.changed_at
    alert.contrary_since = after.contrary_since
    alert.evaluated_at, alert.value = at, value
    alert.subject = "" if reading is None else reading.subject
    turned = after.state is not before.state
    if turned and after.state is AlertState.FIRING:
        alert.fired_at = at
    return turned


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
