"""Celery tasks. A task takes ids only and calls the service function of its name."""

from __future__ import annotations

from celery import shared_task

from provisioning.administration.services import credential_expiry, readings
from provisioning.clusters.services import sample_history, sample_ingest
from provisioning.clusters.services.operations import RECONCILE
from provisioning.reconciling import service as reconciling

AGAIN_S = 0.5


@shared_task(name=RECONCILE)
def reconcile_cluster(*, organization_id: str, cluster_id: str) -> float | None:
    """Reconciles a cluster. Returns after how many seconds to do it again, as `queued` asks."""
    again = reconciling.reconcile_cluster(organization_id=organization_id, cluster_id=cluster_id)
    return AGAIN_S if again else None


@shared_task(name="provisioning.sweep_clusters")
def sweep_clusters() -> None:
    """Reconciles every cluster with something left to do."""
    reconciling.sweep_clusters()


@shared_task(name="provisioning.expire_credentials")
def expire_credentials() -> None:
    """Ends credentials that have expired."""
    credential_expiry.expire_credentials()


@shared_task(name="provisioning.end_readings")
def end_readings() -> None:
    """Says in the audit log what was read, where nobody reads on."""
    readings.end_readings()


@shared_task(name="provisioning.ingest_samples")
def ingest_samples() -> None:
    """Takes in new files of samples."""
    sample_ingest.ingest_samples()


@shared_task(name="provisioning.keep_samples")
def keep_samples() -> None:
    """Adds up hours of samples, and removes what is old."""
    sample_history.keep_samples()
