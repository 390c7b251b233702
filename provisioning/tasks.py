"""Celery tasks. A task takes ids only and calls the service function of its name."""

from __future__ import annotations

from celery import Task, shared_task

from provisioning.administration.services import credential_expiry
from provisioning.reconciling import service as reconciling

AGAIN_S = 0.5


@shared_task(bind=True, name="provisioning.reconcile_cluster")
def reconcile_cluster(self: Task[..., None], *, organization_id: str, cluster_id: str) -> None:
    """Reconciles a cluster, and again after `AGAIN_S` while something is still to come."""
    again = reconciling.reconcile_cluster(organization_id=organization_id, cluster_id=cluster_id)
    if again:
        # Where this message is lost the sweep reconciles the cluster.
        arguments = {"organization_id": organization_id, "cluster_id": cluster_id}
        self.apply_async(kwargs=arguments, countdown=AGAIN_S)


@shared_task(name="provisioning.sweep_clusters")
def sweep_clusters() -> None:
    """Reconciles every cluster with something left to do."""
    reconciling.sweep_clusters()


@shared_task(name="provisioning.expire_credentials")
def expire_credentials() -> None:
    """Ends credentials that have expired."""
    credential_expiry.expire_credentials()
