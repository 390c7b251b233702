"""Deletions wait while too many brokers of a cell are unhealthy; staff may let one pass.

The keeper judges (`provisioning.cell.keeper.guard`) and tells the platform; here is what people
meet.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from brokers.errors import MetadataError
from console.base.common.actor import Actor, system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now, unix_ms
from provisioning.cell.notes import CellHealth, Removal, health_of, put_removal, removal_of
from provisioning.cells import cell_store
from provisioning.choices import Intent
from provisioning.errors import DeletionsHeld
from provisioning.models import BreakGlass, Cluster
from provisioning.querysets import BreakGlassQuerySet

logger = logging.getLogger(__name__)

HELD = (
    "Too many brokers of the service are not well at this moment, and nothing is deleted until "
    "they are. Try again later; who runs the service can make an exception."
)


def cell_health() -> CellHealth | None:
    """What the keeper tells of the cell; None where nobody knows."""
    try:
        return health_of(cell_store())
    except MetadataError as error:
        logger.warning("health.unknown", extra={"error": str(error)})
        return None


def deletions_held() -> bool:
    """Whether the keeper wants nothing deleted. It alone holds: silence does not."""
    health = cell_health()
    return health is not None and health.held


def require_deletion_allowed(*, cluster: Cluster) -> None:
    """Raises `DeletionsHeld`, unless a permit lets it pass, which is used then."""
    if deletions_held() and use_permit(cluster=cluster) is None:
        raise DeletionsHeld(HELD)


def purge_allowed(*, cluster: Cluster) -> bool:
    """Whether a cluster's data may go now. Uses no permit."""
    return not deletions_held() or _permits(cluster).exists()


def use_permit(*, cluster: Cluster) -> BreakGlass | None:
    """The permit that lets a deletion of a cluster pass, used by that; None where there is none."""
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
    """Lets one deletion of a cluster pass, for so long, and tells its organisation's people.

    Raises `MetadataError` where the cluster is purged and the keeper waits for this word.
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
        waiting = removal_of(cell_store(), cluster.pk)
        if waiting is not None:
            tell_purged(cluster=cluster, permit=permit)
            BreakGlass.objects.filter(pk=permit.pk).update(used_at=now())
    return permit


def tell_purged(*, cluster: Cluster, permit: BreakGlass | None) -> None:
    """Tells the keeper that a cluster's records are gone. Raises `MetadataError`."""
    removal = Removal(purged_at_ms=unix_ms(now()))
    if permit is not None:
        removal = Removal(
            purged_at_ms=removal.purged_at_ms,
            break_glass=permit.audit_id,
            break_glass_until_ms=unix_ms(permit.expires_at),
        )
    put_removal(cell_store(), cluster.pk, removal)


def _permits(cluster: Cluster) -> BreakGlassQuerySet:
    return BreakGlass.objects.for_organization(cluster.organization_id).usable(
        cluster_id=cluster.pk, moment=now()
    )
