"""Ends credentials whose time is over. Safe to repeat, to lose and to run twice at a time."""

from __future__ import annotations

import logging

from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope
from provisioning.administration.services.credentials import (
    audit_credential,
    end_credential,
    shown_moment,
)
from provisioning.models import Credential

logger = logging.getLogger(__name__)


def expire_credentials() -> int:
    """Ends all that are due; gives how many. Their connections close within seconds.

    What a cell does not confirm, the sweep of clusters goes on with.
    """
    with system_scope():
        found = list(
            Credential.objects.due(moment=now())
            .order_by("cluster_id", "id")
            .values_list("organization_id", "cluster_id", "pk")
        )
    ended = 0
    for organization_id, cluster_id, credential_id in found:
        try:
            ended += _expire(organization_id, cluster_id, credential_id)
        except Exception:
            # One credential must not keep those behind it alive.
            logger.exception("expiry.failed", extra={"credential": credential_id})
    return ended


def _expire(organization_id: str, cluster_id: str, credential_id: str) -> bool:
    with organization_scope(organization_id):
        if not locks.try_lock("cluster", cluster_id):
            return False  # somebody is at the cluster: the next look is soon
        due = Credential.objects.due(moment=now()).select_related("cluster")
        # Whoever changes it at this moment holds the row, and waits for the lock.
        row = due.select_for_update(of=("self",), skip_locked=True).filter(pk=credential_id).first()
        if row is None:
            return False
        audit_credential(
            system_actor(organization_id),
            row,
            "credential.expire",
            {"name": row.name, "expires_at": shown_moment(row.expires_at)},
        )
        end_credential(credential=row)
    return True
