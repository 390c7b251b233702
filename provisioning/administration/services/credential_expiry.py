"""Ends credentials that have expired. It may be repeated, lost and run twice at a time."""

from __future__ import annotations

import logging

from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.clock import now
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import commit_so_far, task_transaction
from provisioning.administration.services.credentials import (
    audit_credential,
    end_credential,
    shown_moment,
)
from provisioning.models import Credential

logger = logging.getLogger(__name__)

TASK = "provisioning.expire_credentials"


def expire_every_credential(*, organization_id: str) -> None:
    """Has all of an organization's credentials expire now; a task ends them within seconds.

    The caller has entered the organization's tenancy scope.
    """
    expiring = Credential.objects.for_organization(organization_id).current()
    if expiring.update(expires_at=now()):
        enqueue_task(task=TASK, organization_id=organization_id, arguments={})


def expire_credentials() -> int:
    """Ends all expired credentials and returns how many; their connections close within seconds.

    Where a cell does not confirm a removal, or the task dies, the sweep of clusters goes on with
    it.
    """
    with system_scope():
        expired = list(
            Credential.objects.due(moment=now())
            .order_by("cluster_id", "id")
            .values_list("organization_id", "cluster_id", "pk")
        )
    ended = 0
    for organization_id, cluster_id, credential_id in expired:
        try:
            ended += _expire_credential(organization_id, cluster_id, credential_id)
        except Exception:
            # One credential that fails must not keep those behind it alive.
            logger.exception("expiry.failed", extra={"credential": credential_id})
    return ended


def _expire_credential(organization_id: str, cluster_id: str, credential_id: str) -> bool:
    with task_transaction(), organization_scope(organization_id):
        if not locks.try_lock("cluster", cluster_id):
            return False  # somebody else changes the cluster: the next call is soon
        due = Credential.objects.due(moment=now()).select_related("cluster")
        row = due.filter(pk=credential_id).first()
        if row is None:
            return False
        audit_credential(
            system_actor(organization_id),
            row,
            "credential.expire",
            {"name": row.name, "expires_at": shown_moment(row.expires_at)},
        )
        # From here on it counts as ended, whatever becomes of this task while the cell is asked.
        row.removed_at = now()
        row.save(update_fields=["removed_at"])
        commit_so_far()
        end_credential(credential=row)
    return True
