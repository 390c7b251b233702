"""Has a cluster be awake when its schedules say so. Robust to ticks that are lost, late or doubled:
what is wanted follows from the moment at which a worker looks, and the sweep comes back to each
cluster whose moment has come until its cell was told."""

from __future__ import annotations

from datetime import datetime

from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from provisioning.choices import Intent
from provisioning.clusters.schedules import ScheduledState, scheduled_state, schedules_of
from provisioning.models import Cluster


def scheduled_state_of(cluster: Cluster) -> ScheduledState:
    """What a cluster's schedules want at this moment."""
    return scheduled_state(schedules_of(cluster.schedules), now())


def follow_schedules(*, cluster: Cluster) -> datetime | None:
    """Notes in a cluster's row, which is locked, what its schedules want now; gives until when."""
    wanted = ScheduledState(awake=False, until=None)
    if cluster.intent == Intent.ACTIVE:
        wanted = scheduled_state_of(cluster)
    if wanted.awake == cluster.schedule_awake:
        return wanted.until
    cluster.schedule_awake = wanted.awake
    Cluster.objects.filter(pk=cluster.pk).update(schedule_awake=wanted.awake)
    if cluster.intent == Intent.ACTIVE:
        until = None if wanted.until is None else wanted.until.isoformat()
        record_audit(
            actor=system_actor(cluster.organization_id),
            action="cluster.follow_schedule",
            target_type="cluster",
            target_id=cluster.pk,
            detail={"awake": wanted.awake, "until": until},
        )
    return wanted.until


def look_again_at(*, cluster: Cluster, moment: datetime | None) -> None:
    """Its cell has what its schedules want until this moment: the sweep comes back then."""
    if cluster.schedule_due_at != moment:
        cluster.schedule_due_at = moment
        Cluster.objects.filter(pk=cluster.pk).update(schedule_due_at=moment)
