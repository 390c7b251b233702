"""Receives the signals of accounts. A receiver changes rows and adds outbox entries, no more."""

from __future__ import annotations

from console.base.accounts.models import Project
from console.base.common.actor import Actor, system_actor
from provisioning.administration.services import credential_expiry
from provisioning.clusters.services import clusters
from provisioning.reconciling import samples


def create_first_cluster(*, actor: Actor, from_console: bool, **_: object) -> None:
    """Creates a cluster with sample data for an organization that signed up in the console."""
    if from_console:
        clusters.create_cluster(
            actor=actor, name=samples.CLUSTER_NAME, sample_data=True, deletion_protection=False
        )


def follow_account_status(*, organization_id: str, **_: object) -> None:
    """Suspends or resumes the clusters of an organization as its account status says."""
    clusters.set_suspended(organization_id=organization_id)


def follow_traffic_limit(*, organization_id: str, **_: object) -> None:
    """Has the clusters of an organization refuse, slow down or serve traffic as it may have it."""
    clusters.set_traffic_limit(organization_id=organization_id)


def follow_closing(*, actor: Actor, **_: object) -> None:
    """Deletes the clusters of an organization that was closed."""
    clusters.delete_every_cluster(actor=actor)


def follow_forfeiting(*, organization_id: str, **_: object) -> None:
    """Deletes the clusters of an organization that did not pay for them."""
    clusters.delete_every_cluster(actor=system_actor(organization_id), forfeited=True)


def follow_redeeming(*, organization_id: str, **_: object) -> None:
    """Restores the clusters of an organization that paid for them after all."""
    clusters.restore_forfeited_clusters(actor=system_actor(organization_id))


def end_credentials(*, organization_id: str, **_: object) -> None:
    """Ends the Kafka credentials of an organization whose owner took it over."""
    credential_expiry.expire_every_credential(organization_id=organization_id)


def keep_clusters(*, project: Project, **_: object) -> None:
    """Keeps a project that has clusters from being deleted. Raises `ProjectNotEmpty`."""
    clusters.leave_project(project=project)
