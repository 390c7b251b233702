"""Keeps clusters awake when their schedules say so.

Whether a cluster is to be awake follows from the moment at which a worker looks, so a tick that is
lost, late or doubled does no harm. The sweep returns to a cluster whose schedules are due until its
cell has the change.
"""

from __future__ import annotations

from datetime import datetime

from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now
from provisioning.choices import Intent
from provisioning.clusters.schedules import ScheduledState, scheduled_state, schedules_of
from provisioning.models import Cluster


def scheduled_state_of(cluster: Cluster) -> ScheduledState:
    """Whether a cluster's schedules want it awake at this moment, and until when."""
    return scheduled_state(schedules_of(cluster.schedules), now())


def follow_schedules(*, cluster: Cluster) -> datetime | None:
    """Notes in a cluster's row, which is locked, whether its schedules want it awake now.

    Returns until when that holds; None where it never changes.
    """
    state = ScheduledState(awake=False, until=None)
    if cluster.intent == Intent.ACTIVE:
        state = scheduled_state_of(cluster)
    if state.awake == cluster.schedule_awake:
        return state.until
    cluster.schedule_awake = state.awake
    Cluster.objects.filter(pk=cluster.pk).update(schedule_awake=state.awake)
    if cluster.intent == Intent.ACTIVE:
        until = None if state.until is None else state.until.isoformat()
        record_audit(
            actor=system_actor(cluster.organization_id),
            action="cluster.follow_schedule",
            target_type="cluster",
            target_id=cluster.pk,
            detail={"awake": state.awake, "until": until},
        )
    return state.until


def look_again_at(*, cluster: Cluster, moment: datetime | None) -> None:
    """Has the sweep return to a cluster at a moment: until then its cell has what is scheduled."""
    if cluster.schedule_due_at != moment:
        cluster.schedule_due_at = moment
        Cluster.objects.filter(pk=cluster.pk).update(schedule_due_at=moment)
