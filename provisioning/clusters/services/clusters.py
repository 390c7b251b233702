"""Changes what clusters are asked to be.

A change writes the cluster's row, an operation and an outbox entry in one transaction; a worker
then makes the cell follow.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from console.base.accounts.errors import OrganizationClosed, ProjectNotEmpty
from console.base.accounts.models import Organization, Project
from console.base.accounts.services import project_for
from console.base.common import locks
from console.base.common.actor import Actor
from console.base.common.audit import change_of, changes_of, record_audit
from console.base.common.clock import now, unix_ms
from console.base.common.conf import config
from console.base.common.errors import (
    AppError,
    Conflict,
    FieldError,
    NameNotConfirmed,
    NotFound,
)
from console.base.common.names import require_free_name
from console.base.limits.services import require_room
from provisioning.choices import Intent, OperationType, SampleData
from provisioning.clusters.services.deletion_guard import require_deletion_allowed
from provisioning.clusters.services.operations import (
    begin_operation,
    enqueue_reconcile,
    require_idle,
)
from provisioning.clusters.services.placement import (
    choose_cell,
    complete_ports,
    host_label,
    reallocate_ports,
    release_ports,
)
from provisioning.clusters.services.scheduling import scheduled_state_of
from provisioning.errors import (
    CellFull,
    ClusterDeleted,
    ClusterNeverSleeps,
    ClusterNotDeleted,
    ClusterNotSuspended,
    ClusterSuspended,
    DeletionProtected,
)
from provisioning.models import Cluster, Operation
from provisioning.models.cluster import IDLE_TIMEOUT_S_DEFAULT

logger = logging.getLogger(__name__)

# Operations during which the specification may change again: none of them depends on it.
HARMLESS = (OperationType.CREATE_CLUSTER, OperationType.WAKE_CLUSTER)
SUSPENSIONS = (OperationType.SUSPEND_CLUSTER, OperationType.RESUME_CLUSTER)


def create_cluster(  # noqa: PLR0913 (what a cluster consists of)
    *,
    actor: Actor,
    name: str,
    project_id: str | None = None,
    region: str | None = None,
    labels: dict[str, str] | None = None,
    idle_timeout_s: int = IDLE_TIMEOUT_S_DEFAULT,
    scale_min: int = 0,
    scale_max: int = 1,
    schedules: list[dict[str, Any]] | None = None,
    deletion_protection: bool = True,
    sample_data: bool = False,
) -> Operation:
    """Creates a cluster, in the default project unless another is named.

    Raises `LimitReached`, `NameTaken`, `UnknownRegion`, `CellFull`, and of the project
    `UnknownProject` and `ProjectForbidden`.
    """
    organization_id = actor.organization_id
    _require_brokers_allowed(scale_max, used=0, organization_id=organization_id)
    project = project_for(actor=actor, project_id=project_id)
    # The lock makes the second of two concurrent requests count the first one's cluster.
    locks.lock("clusters", organization_id)
    clusters = Cluster.objects.for_organization(organization_id)
    require_room("clusters", organization_id=organization_id, used=clusters.active().count())
    require_room(
        "deleted_clusters", organization_id=organization_id, used=clusters.deleted().count()
    )
    _require_free_name(organization_id, name)
    # The organization's row is locked: a suspension or verification at this moment either comes
    # after this transaction and changes the cluster too, or comes before it and is read here.
    organization = _open_organization(organization_id)
    cell = choose_cell(region=region)
    cluster = Cluster(
        organization=organization,
        project=project,
        cell=cell,
        name=name,
        labels=labels or {},
        host=host_label(name),
        idle_timeout_s=idle_timeout_s,
        scale_min=scale_min,
        scale_max=scale_max,
        schedules=schedules or [],
        deletion_protection=deletion_protection,
        suspended=not organization.may_be_reached(local=config().local),
        **_traffic_columns(organization),
        sample_data=SampleData.WANTED if sample_data else SampleData.NONE,
    )
    cluster.ports = complete_ports(cell_id=cell.pk, cluster_id=cluster.pk, brokers=scale_max)
    cluster.save(force_insert=True)
    detail = {"name": name, "project_id": project.pk}
    return _begin_change(actor, cluster, OperationType.CREATE_CLUSTER, detail)


def update_cluster(*, actor: Actor, cluster: Cluster, changes: dict[str, Any]) -> Cluster:
    """Changes name, labels, idle time, scale, schedules, protection or project of a cluster.

    The caller has locked the cluster's row, and checked that the actor may take it out of its
    project. Raises `OperationInProgress`, `ClusterDeleted`, `NameTaken`, `LimitReached`,
    `CellFull`, and for another project what `project_for` raises.
    """
    _require_active(cluster)
    require_idle(cluster=cluster, but_for=HARMLESS)
    # Compared with `scale` and not with the stored value, which may be more than what runs.
    if changes.get("scale_max", 0) > cluster.scale:
        _require_brokers_allowed(
            changes["scale_max"],
            used=cluster.scale,
            organization_id=cluster.organization_id,
            cluster_id=cluster.pk,
        )
    changed = {name: value for name, value in changes.items() if getattr(cluster, name) != value}
    if not changed:
        return cluster
    if "project_id" in changed:
        project_for(actor=actor, project_id=changed["project_id"])
    if "name" in changed:
        locks.lock("clusters", cluster.organization_id)
        _require_free_name(cluster.organization_id, changed["name"])
    detail = changes_of(cluster, changed)
    if "scale_max" in changed:
        changed["ports"] = complete_ports(
            cell_id=cluster.cell_id,
            cluster_id=cluster.pk,
            brokers=changed["scale_max"],
            held=cluster.ports,
        )
    bump_generation(cluster=cluster, **changed)
    record_audit(
        actor=actor,
        action="cluster.update",
        target_type="cluster",
        target_id=cluster.pk,
        detail=detail,
    )
    enqueue_reconcile(cluster=cluster)
    return cluster


def delete_cluster(
    *, actor: Actor, cluster: Cluster, name: str | None, held: bool = False
) -> Operation:
    """Deletes a cluster, whose row is locked; it can be restored for seven days.

    `name` must be its name. `held`: whether deletions were held a moment ago. Raises
    `DeletionProtected`, `NameNotConfirmed`, `ClusterDeleted`, `OperationInProgress`,
    `DeletionsHeld`.
    """
    _require_active(cluster)
    if name != cluster.name:
        detail = "Give the cluster's name as `name` to confirm."
        raise NameNotConfirmed(detail, errors=[FieldError("?name", "name_not_confirmed", detail)])
    if cluster.deletion_protection:
        raise DeletionProtected("Set deletion_protection to false first.")
    superseded = (*HARMLESS, OperationType.SLEEP_CLUSTER, *SUSPENSIONS)
    require_idle(cluster=cluster, but_for=superseded)
    require_deletion_allowed(cluster=cluster, held=held)
    return _begin_deletion(actor, cluster, supersedes=superseded)


def delete_every_cluster(*, actor: Actor, forfeited: bool = False) -> int:
    """Deletes all clusters of the actor's organization, also protected ones; returns how many.

    It is for an organization that was closed, or did not pay (`forfeited`). Operations that are not
    finished are cancelled.
    """
    active = Cluster.objects.for_organization(actor.organization_id).active()
    clusters = list(active.select_for_update().order_by("id"))
    for cluster in clusters:
        _begin_deletion(actor, cluster, supersedes=tuple(OperationType), forfeited=forfeited)
    return len(clusters)


def restore_forfeited_clusters(*, actor: Actor) -> int:
    """Restores the clusters of the actor's organization that it had forfeited; returns how many.

    One that cannot be restored now, such as one whose name is taken, stays deleted, and can be
    restored by hand for as long as any other.
    """
    forfeited = Cluster.objects.for_organization(actor.organization_id).filter(
        intent=Intent.DELETED.value, forfeited=True
    )
    restored = 0
    for cluster in forfeited.select_for_update().order_by("id"):
        try:
            with transaction.atomic():
                undelete_cluster(actor=actor, cluster=cluster)
        except AppError as error:
            extra = {"cluster": cluster.pk, "reason": error.code}
            logger.warning("clusters.not_restored", extra=extra)
        else:
            restored += 1
    return restored


def undelete_cluster(*, actor: Actor, cluster: Cluster, name: str | None = None) -> Operation:
    """Restores a deleted cluster, whose row is locked, under `name` where one is given.

    Raises `ClusterNotDeleted`, `NotFound` where its data is being removed, `NameTaken`,
    `LimitReached`, `CellFull`, `OperationInProgress`.
    """
    if cluster.intent == Intent.PURGING:
        raise NotFound
    if cluster.intent != Intent.DELETED:
        raise ClusterNotDeleted
    if cluster.purge_at is not None and cluster.purge_at <= now():
        raise NotFound
    require_idle(cluster=cluster)
    locks.lock("clusters", cluster.organization_id)
    _open_organization(cluster.organization_id)
    used = Cluster.objects.for_organization(cluster.organization_id).active().count()
    require_room("clusters", organization_id=cluster.organization_id, used=used)
    chosen = name or cluster.name
    renamed = cluster.name if cluster.name == chosen else change_of(cluster.name, chosen)
    _require_free_name(cluster.organization_id, chosen)
    *before, (since_ms, _) = cluster.deletions
    bump_generation(
        cluster=cluster,
        intent=Intent.ACTIVE.value,
        deleted_at=None,
        forfeited=False,
        deletions=[*before, [since_ms, unix_ms(now())]],
        ports=reallocate_ports(
            cell_id=cluster.cell_id,
            cluster_id=cluster.pk,
            brokers=cluster.scale,
            former=cluster.ports,
        ),
        name=chosen,
    )
    return _begin_change(actor, cluster, OperationType.UNDELETE_CLUSTER, {"name": renamed})


def wake_cluster(*, actor: Actor, cluster: Cluster) -> Operation:
    """Starts a cluster's brokers now. The caller has locked its row.

    Raises `ClusterDeleted`, `ClusterSuspended`, `OperationInProgress`.
    """
    _require_active(cluster)
    if not cluster.may_run:
        raise ClusterSuspended
    return _begin_change(actor, cluster, OperationType.WAKE_CLUSTER, {})


def sleep_cluster(*, actor: Actor, cluster: Cluster) -> Operation:
    """Stops a cluster's brokers as soon as no client is connected. The caller has locked its row.

    Raises `ClusterDeleted`, `ClusterNeverSleeps`, `OperationInProgress`.
    """
    _require_active(cluster)
    if cluster.scale_min:
        raise ClusterNeverSleeps("Set scale.min to 0 first.")
    if scheduled_state_of(cluster).awake:
        raise ClusterNeverSleeps("One of its schedules keeps it awake now.")
    require_idle(cluster=cluster, but_for=(OperationType.WAKE_CLUSTER,))
    bump_generation(cluster=cluster, sleep_wanted=True)
    superseded = (OperationType.WAKE_CLUSTER,)
    return _begin_change(actor, cluster, OperationType.SLEEP_CLUSTER, {}, supersedes=superseded)


def suspend_cluster(*, actor: Actor, cluster: Cluster) -> Operation:
    """Stops a cluster, whose row is locked, until `resume_cluster`; it keeps its data.

    Its clients' connections end. Raises `ClusterDeleted`, `ClusterSuspended` where it was suspended
    on request before, `OperationInProgress`.
    """
    _require_active(cluster)
    if cluster.suspend_wanted:
        raise ClusterSuspended
    superseded = (OperationType.WAKE_CLUSTER, OperationType.SLEEP_CLUSTER, *SUSPENSIONS)
    require_idle(cluster=cluster, but_for=superseded)
    bump_generation(cluster=cluster, suspend_wanted=True, sleep_wanted=False)
    return _begin_change(actor, cluster, OperationType.SUSPEND_CLUSTER, {}, supersedes=superseded)


def resume_cluster(*, actor: Actor, cluster: Cluster) -> Operation:
    """Takes `suspend_cluster` back: the cluster, whose row is locked, wakes when a client connects.

    A suspension because of the organization's account status stays. Raises `ClusterDeleted`,
    `ClusterNotSuspended`, `OperationInProgress`.
    """
    _require_active(cluster)
    if not cluster.suspend_wanted:
        raise ClusterNotSuspended
    require_idle(cluster=cluster, but_for=SUSPENSIONS)
    bump_generation(cluster=cluster, suspend_wanted=False)
    return _begin_change(actor, cluster, OperationType.RESUME_CLUSTER, {}, supersedes=SUSPENSIONS)


def set_suspended(*, organization_id: str) -> int:
    """Suspends an organization's clusters or lets them run again, as its account status says.

    Returns how many clusters changed.
    """
    organization = Organization.objects.get(pk=organization_id)
    return _change_all(
        organization_id, suspended=not organization.may_be_reached(local=config().local)
    )


def set_traffic_limit(*, organization_id: str) -> int:
    """Has an organization's clusters refuse, slow down or serve traffic, as its row says.

    Clusters that sleep or are deleted change too: the limit holds once they are awake or restored.
    Returns how many clusters changed.
    """
    organization = Organization.objects.get(pk=organization_id)
    return _change_all(organization_id, **_traffic_columns(organization))


def _traffic_columns(organization: Organization) -> dict[str, Any]:
    names = ("traffic_kind", "traffic_reason", "traffic_bytes_per_s")
    return {name: getattr(organization, name) for name in names}


def clusters_of_projects(*, organization_id: str, project_ids: Collection[str]) -> list[str]:
    """Ids of the clusters of projects, also of purged ones, whose usage is still billed."""
    rows = Cluster.objects.for_organization(organization_id).filter(project_id__in=project_ids)
    return list(rows.order_by("id").values_list("id", flat=True))


def leave_project(*, project: Project) -> None:
    """Empties a project that is being deleted and whose row is locked.

    Deleted clusters that can be restored move to the default project, so that a project can be
    deleted at once and they still have one to be restored to. Raises `ProjectNotEmpty` where the
    project has clusters that are not deleted.
    """
    rows = Cluster.objects.for_organization(project.organization_id).filter(project=project)
    # The lock makes a restoration at this moment come after this transaction and find the cluster
    # moved, or before it, so that the cluster counts here.
    clusters = list(rows.not_purged().select_for_update().order_by("id"))
    count = sum(cluster.intent == Intent.ACTIVE for cluster in clusters)
    if count:
        raise ProjectNotEmpty(f"{count} clusters are left in it.")
    default = Project.objects.for_organization(project.organization_id).get(is_default=True)
    rows.not_purged().update(project=default)


def _change_all(organization_id: str, **values: object) -> int:
    """Gives every cluster of an organization these values; returns how many did not have them."""
    others = Cluster.objects.for_organization(organization_id).not_purged().exclude(**values)
    changed = list(others.select_for_update().order_by("id"))
    for cluster in changed:
        bump_generation(cluster=cluster, **values)
        enqueue_reconcile(cluster=cluster)
    return len(changed)


def add_missing_ports(*, cluster: Cluster) -> None:
    """Gives a cluster, whose row is locked, the ports that it lacks where its cell has them free.

    Ports are missing where an earlier release made the cluster, or its cell had none left then.
    """
    if cluster.intent != Intent.ACTIVE:
        return
    try:
        ports = complete_ports(
            cell_id=cluster.cell_id,
            cluster_id=cluster.pk,
            brokers=cluster.scale,
            held=cluster.ports,
        )
    except CellFull:
        return
    if ports != cluster.ports:
        bump_generation(cluster=cluster, ports=ports)


def bump_generation(*, cluster: Cluster, **changes: object) -> None:
    """Changes a cluster's specification and raises its generation by one.

    Raises `Conflict` where the row has another generation than when it was read.
    """
    # One UPDATE compares and changes; then the object in memory gets the same values.
    changed = Cluster.objects.filter(pk=cluster.pk, generation=cluster.generation).update(
        generation=F("generation") + 1, **changes
    )
    if not changed:
        raise Conflict("The cluster changed meanwhile.")
    for name, value in changes.items():
        setattr(cluster, name, value)
    cluster.generation += 1


def _begin_deletion(
    actor: Actor,
    cluster: Cluster,
    *,
    supersedes: tuple[OperationType, ...],
    forfeited: bool = False,
) -> Operation:
    deleted_at = now()
    release_ports(cluster_id=cluster.pk)
    bump_generation(
        cluster=cluster,
        intent=Intent.DELETED.value,
        deleted_at=deleted_at,
        forfeited=forfeited,
        deletions=[*cluster.deletions, [unix_ms(deleted_at), None]],
        sleep_wanted=False,
    )
    detail = {"name": cluster.name}
    return _begin_change(
        actor, cluster, OperationType.DELETE_CLUSTER, detail, supersedes=supersedes
    )


def _begin_change(
    actor: Actor,
    cluster: Cluster,
    kind: OperationType,
    detail: Mapping[str, object],
    *,
    supersedes: tuple[OperationType, ...] = (),
) -> Operation:
    operation = begin_operation(cluster=cluster, kind=kind, supersedes=supersedes)
    verb = kind.value.removesuffix("_cluster")
    record_audit(
        actor=actor,
        action=f"cluster.{verb}",
        target_type="cluster",
        target_id=cluster.pk,
        detail=detail,
    )
    enqueue_reconcile(cluster=cluster)
    return operation


def _open_organization(organization_id: str) -> Organization:
    """The organization's row, locked so that nobody closes it now. Raises `OrganizationClosed`."""
    organization = Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
    if organization.closed_at is not None:
        raise OrganizationClosed
    return organization


def _require_active(cluster: Cluster) -> None:
    if cluster.intent != Intent.ACTIVE:
        raise ClusterDeleted


def _require_brokers_allowed(
    count: int, *, used: int, organization_id: str, cluster_id: str = ""
) -> None:
    require_room(
        "brokers",
        organization_id=organization_id,
        cluster_id=cluster_id,
        used=used,
        adding=count - used,
    )


def _require_free_name(organization_id: str, name: str) -> None:
    clusters = Cluster.objects.for_organization(organization_id).active()
    require_free_name(clusters, name, "A cluster of this organization")
