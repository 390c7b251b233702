"""Holds deletions while too many brokers of a cell are unhealthy; staff may let one pass.

The keeper decides that (`provisioning.cell.keeper.guard`) and writes it into the cell's metadata
store. This module refuses the requests of customers meanwhile.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from brokers.errors import MetadataError
from console.base.common.actor import Actor, system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now, unix_ms
from console.base.common.transactions import commit_so_far
from provisioning.cell.notes import CellHealth, Removal, health_of, put_removal, removal_of
from provisioning.cells import cell_store
from provisioning.choices import Intent
from provisioning.errors import DeletionsHeld
from provisioning.models import BreakGlass, Cluster
from provisioning.querysets import BreakGlassQuerySet

logger = logging.getLogger(__name__)

HELD = (
    "Too many brokers of the service are unhealthy at this moment, and nothing is deleted until "
    "they are well. Try again later, or ask the operator of the service for an exception."
)


def cell_health() -> CellHealth | None:
    """The health of the cell as the keeper wrote it; None where it cannot be read."""
    try:
        return health_of(cell_store())
    except MetadataError as error:
        logger.warning("health.unknown", extra={"error": str(error)})
        return None


def deletions_held() -> bool:
    """Whether the keeper holds deletions. They go on where its note is missing or unreadable."""
    health = cell_health()
    return health is not None and health.held


def require_deletion_allowed(*, cluster: Cluster, held: bool) -> None:
    """Raises `DeletionsHeld` where deletions are `held` and no permit is left, which it then uses.

    The caller has asked `deletions_held` before it locked the cluster's row.
    """
    if held and use_permit(cluster=cluster) is None:
        raise DeletionsHeld(HELD)


def purge_allowed(*, cluster: Cluster) -> bool:
    """Whether a cluster's data may be removed now. A permit counts and is not used up."""
    if not deletions_held():
        return True
    return _permits(cluster).exists() or _permit_of_purge(cluster) is not None


def use_permit_to_purge(*, cluster: Cluster) -> BreakGlass | None:
    """Uses up a permit to remove a cluster's data; None where there is none.

    A removal that died and is repeated goes on with the permit that it used before.
    """
    return _permit_of_purge(cluster) or use_permit(cluster=cluster)


def use_permit(*, cluster: Cluster) -> BreakGlass | None:
    """Uses up and returns the oldest permit for a cluster; None where there is none."""
    permit = _permits(cluster).select_for_update().order_by("created_at", "id").first()
    if permit is not None:
        permit.used_at = now()
        permit.save(update_fields=["used_at"])
        record_audit(
            actor=system_actor(cluster.organization_id),
            action="cluster.use_break_glass",
            target_type="cluster",
            target_id=cluster.pk,
            detail={"audit_id": permit.audit_id},
        )
    return permit


def break_glass(*, actor: Actor, cluster: Cluster, reason: str, lasts_s: int) -> BreakGlass:
    """Permits one deletion of a cluster for `lasts_s` seconds.

    The cluster's organization reads the reason in its audit log. Where the cluster is purged and
    the keeper waits for the permit, it is committed and used at once. Raises `MetadataError`.
    """
    expires_at = now() + timedelta(seconds=lasts_s)
    entry = record_audit(
        actor=actor,
        action="cluster.break_glass",
        target_type="cluster",
        target_id=cluster.pk,
        detail={"reason": reason, "expires_at": expires_at.isoformat()},
    )
    permit = BreakGlass.objects.create(
        organization_id=cluster.organization_id,
        cluster=cluster,
        reason=reason,
        made_by=actor.id,
        audit_id=entry.pk,
        expires_at=expires_at,
    )
    if cluster.intent == Intent.PURGED:
        commit_so_far()
        waiting = removal_of(cell_store(), cluster.pk)
        if waiting is not None:
            report_purge(cluster=cluster, permit=permit)
            BreakGlass.objects.filter(pk=permit.pk).update(used_at=now())
    return permit


def report_purge(*, cluster: Cluster, permit: BreakGlass | None) -> None:
    """Reports to the keeper that a cluster's records are removed. Raises `MetadataError`."""
    removal = Removal(purged_at_ms=unix_ms(now()))
    if permit is not None:
        removal = Removal(
            purged_at_ms=removal.purged_at_ms,
            break_glass=permit.audit_id,
            break_glass_until_ms=unix_ms(permit.expires_at),
        )
    put_removal(cell_store(), cluster.pk, removal)


def _permit_of_purge(cluster: Cluster) -> BreakGlass | None:
    """The permit that the removal of a cluster's data used; the deletion itself was earlier."""
    used = BreakGlass.objects.for_organization(cluster.organization_id).filter(
        cluster=cluster, used_at__gte=cluster.purge_at, expires_at__gt=now()
    )
    return used.order_by("used_at", "id").first()


def _permits(cluster: Cluster) -> BreakGlassQuerySet:
    return BreakGlass.objects.for_organization(cluster.organization_id).usable(
        cluster_id=cluster.pk, moment=now()
    )
