"""Celery tasks: each calls one service of its name, and takes ids only."""

from __future__ import annotations

from celery import Task, shared_task

from provisioning.administration.services import credential_expiry
from provisioning.reconciling import service as reconciling

AGAIN_S = 0.5


@shared_task(bind=True, name="provisioning.reconcile_cluster")
def reconcile_cluster(self: Task[..., None], *, organization_id: str, cluster_id: str) -> None:
    """Looks at a cluster, and again soon while something is yet to come."""
    again = reconciling.reconcile_cluster(organization_id=organization_id, cluster_id=cluster_id)
    if again:
        # Where this is lost the sweep comes.
        arguments = {"organization_id": organization_id, "cluster_id": cluster_id}
        self.apply_async(kwargs=arguments, countdown=AGAIN_S)


@shared_task(name="provisioning.sweep_clusters")
def sweep_clusters() -> None:
    """Looks at every cluster with something left to do."""
    reconciling.sweep_clusters()


@shared_task(name="provisioning.expire_credentials")
def expire_credentials() -> None:
    """Ends credentials whose time is over."""
    credential_expiry.expire_credentials()
