"""What provisioning does when something happens in accounts. Rows and outbox entries only."""

from __future__ import annotations

from console.base.accounts.models import Project
from console.base.common.actor import Actor
from provisioning.clusters.services import clusters
from provisioning.reconciling import samples


def create_first_cluster(*, actor: Actor, from_console: bool, **_: object) -> None:
    """Whoever signs up in the console finds a cluster with a topic to look at."""
    if from_console:
        clusters.create_cluster(
            actor=actor, name=samples.CLUSTER_NAME, sample_data=True, deletion_protection=False
        )


def follow_account_status(*, organization_id: str, **_: object) -> None:
    """Clusters serve as long as their organisation may be reached."""
    clusters.set_suspended(organization_id=organization_id)


def follow_produce_suspension(*, organization_id: str, **_: object) -> None:
    """Clusters take records as long as their organisation may produce."""
    clusters.set_produce_suspension(organization_id=organization_id)


def follow_closing(*, actor: Actor, **_: object) -> None:
    """Clusters of a closed organisation go."""
    clusters.delete_every_cluster(actor=actor)


def keep_clusters(*, project: Project, **_: object) -> None:
    """A project that has clusters stays; those that are deleted leave it."""
    clusters.leave_project(project=project)
