"""Reconciles clusters with their cells.

It may be repeated, interrupted, and run twice at a time. No transaction is open while the cell is
asked: what was read may have changed by then, so rows are changed on condition that they are as
they were read.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import cast

from django.db import transaction
from django.db.models import F
from prometheus_client import Counter

from brokers.errors import MetadataError, NotFoundError
from brokers.metadata import ClusterStore
from brokers.metadata_records import (
    ClusterLimits,
    ClusterRecord,
    ClusterSpec,
    SpecState,
    TrafficLimit,
    TrafficLimitKind,
)
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now, unix_ms
from console.base.common.concurrency import only_one
from console.base.common.errors import Conflict
from console.base.common.metered import is_metered
from console.base.common.requests import in_request
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import (
    commit_so_far,
    outside_transaction,
    task_transaction,
)
from console.base.limits.services import limit_of
from provisioning.administration.services.announcing import settle_announcements
from provisioning.administration.services.credential_repair import repair_credentials
from provisioning.administration.services.protocol_changes import ingest_protocol_changes
from provisioning.cells import (
    allow_brokers,
    broker_access,
    cell_store,
    cluster_store,
    forbid_brokers,
)
from provisioning.choices import Intent, OperationState, OperationType, SampleData
from provisioning.clusters.services.clusters import add_missing_ports, bump_generation
from provisioning.clusters.services.deletion_guard import (
    cell_health,
    deletions_held,
    purge_allowed,
    report_purge,
    use_permit_to_purge,
)
from provisioning.clusters.services.limits import limits_of_cluster
from provisioning.clusters.services.operations import (
    admit_operation,
    clusters_that_wait,
    finish_operation,
    note_progress,
)
from provisioning.clusters.services.placement import release_ports
from provisioning.clusters.services.samples import remove_samples
from provisioning.clusters.services.scheduling import follow_schedules, look_again_at
from provisioning.kafka import KafkaCallError
from provisioning.models import BreakGlass, Cluster, Operation
from provisioning.models.cluster import RESTORABLE
from provisioning.reconciling import plan as reconcile
from provisioning.reconciling.samples import (
    create_sample_topic,
    has_sample_topic,
    produce_samples,
)
from provisioning.reconciling.storage import remove_storage

logger = logging.getLogger(__name__)

RECONCILES = Counter("freshet_reconciles", "Looks at a cluster, by what came of them", ("result",))
# The sender of wake requests that the control plane itself makes.
WAKER = "control-plane"
# How many clusters without known work a sweep looks at, those that were not looked at longest
# first.
RECHECKED_A_SWEEP = 50
# A sweep ends after this time, so that the worker is free; the next one goes on with the clusters
# that were not looked at longest.
SWEEP_S_MAX = 20.0
# A sweep that says nothing for so long has died. One cluster's purge may take longer: then another
# sweep runs beside it, and passes that cluster over.
SWEEP_SILENT_S = 30.0
# For this long after its operation began, a cluster is reconciled again and again by tasks.
CHASED_S = 120.0
# This long after its deletion no broker of a cluster runs any more, so there is no further usage.
LAST_USE = timedelta(hours=1)
# After this time the data is purged although usage is missing: we promise that deleted data goes.
METER_WAIT_MAX = timedelta(days=30)


def reconcile_cluster(*, organization_id: str, cluster_id: str, retry: bool = True) -> bool:
    """Does what `reconcile.plan_actions` says. Returns whether to reconcile again soon.

    While another worker or a request holds the cluster's lock nothing is done, and `retry` is
    returned: nobody waits, and the one that comes again sees the changes of the one before.

    It never raises for a cell or storage that does not answer: the operation stays as it is, and
    the sweep tries again.
    """
    with task_transaction(), organization_scope(organization_id):
        if not locks.try_lock("cluster", cluster_id):
            return retry
        work = _work_of(organization_id, cluster_id)
        if work is None:
            return False
        cluster, operation = work
        add_missing_ports(cluster=cluster)
        due_at = follow_schedules(cluster=cluster)
        # From here on the row is not locked, as the cell may take its time.
        commit_so_far()
        observed = observe_cluster(cluster)
        if observed.known and not _date_deletions(cluster, observed):
            return True
        desired = desired_of(cluster, operation)
        actions = reconcile.plan_actions(desired, observed)
        # A longer operation is left to the sweep, so that a cell that is away is not asked twice a
        # second.
        chased = desired.operation is not None and desired.operation.age_s < CHASED_S
        try:
            with _as_caused(operation):
                again = _perform_actions(cluster, operation, actions)
            if observed.known:
                look_again_at(cluster=cluster, moment=due_at)
                commit_so_far()
            if observed.known and cluster.intent == Intent.ACTIVE:
                repair_credentials(cluster=cluster)
            RECONCILES.labels(
                "again" if again else "settled" if observed.known else "unknown"
            ).inc()
        except Conflict:
            # A request changed the row meanwhile, and has it reconciled too.
            RECONCILES.labels("again").inc()
            return chased
        except (MetadataError, OSError) as error:
            RECONCILES.labels("failed").inc()
            logger.warning("reconcile.failed", extra={"cluster": cluster_id, "error": str(error)})
            return chased
    if reconcile.ProduceSamples() in actions:
        _produce_samples(cluster, observed)
    return again and chased


def _work_of(organization_id: str, cluster_id: str) -> tuple[Cluster, Operation | None] | None:
    """A cluster's row, locked, and its unfinished operation; None where nothing is to be done.

    An operation that waits for others of its organization counts as none, and of a cluster that is
    to be created the cell learns nothing until then.
    """
    rows = Cluster.objects.not_purged().select_for_update(no_key=True)
    cluster = rows.for_organization(organization_id).filter(pk=cluster_id).first()
    if cluster is None:
        return None
    operation = cluster.operations.unfinished().first()
    Cluster.objects.filter(pk=cluster_id).update(checked_at=now())
    if operation is None or admit_operation(operation=operation):
        return cluster, operation
    RECONCILES.labels("waits").inc()
    return None if operation.type == OperationType.CREATE_CLUSTER else (cluster, None)


def sweep_clusters() -> int:
    """Reconciles every cluster with work left, and some others, for a while. Returns how many.

    The sweep alone would be enough; tasks only make changes quicker. Of several sweeps at a time
    one does something, so that all of them take one worker's time at most.
    """
    with only_one("sweep_clusters", lasts_s=SWEEP_SILENT_S) as place:
        if place is None:
            return 0
        deadline, looked_at = time.monotonic() + SWEEP_S_MAX, 0
        for cluster_id, organization_id in _clusters_to_sweep():
            if time.monotonic() > deadline:
                break
            looked_at += 1
            try:
                reconcile_cluster(
                    organization_id=organization_id, cluster_id=cluster_id, retry=False
                )
                ingest_protocol_changes(organization_id=organization_id, cluster_id=cluster_id)
            except Exception:
                # One cluster must not keep the sweep from the others.
                logger.exception("sweep.failed", extra={"cluster": cluster_id})
            place.renew()
        forget_purged()
        settle_announcements()
    return looked_at


def _clusters_to_sweep() -> list[tuple[str, str]]:
    """(cluster id, organization) of those with work left, then of others; the longest waiting
    first."""
    with system_scope():
        moment, longest_first = now(), (F("checked_at").asc(nulls_first=True), "id")
        urgent = Cluster.objects.to_recheck(moment=moment, deleted_before=moment - RESTORABLE)
        urgent = urgent.exclude(pk__in=clusters_that_wait())
        rest = Cluster.objects.not_purged().order_by(*longest_first)
        organizations = dict(urgent.order_by(*longest_first).values_list("pk", "organization_id"))
        organizations |= dict(rest.values_list("pk", "organization_id")[:RECHECKED_A_SWEEP])
    return list(organizations.items())


def forget_purged() -> int:
    """Removes records that were written to the cell after their cluster was purged.

    Such a write comes from a worker that hung until another one had its lock, or from a call that
    arrived late; after the purge no record is left that could refuse it. Records of a cluster that
    has no row stay: they may be younger than the backup from which the rows were restored.

    Returns how many clusters were removed.
    """
    try:
        with task_transaction():
            reported = [*cell_store().specs(), *_orphans()]
    except (MetadataError, OSError) as error:
        logger.warning("purged.later", extra={"error": str(error)})
        return 0
    with system_scope():
        clusters = list(Cluster.objects.filter(pk__in=reported, intent=Intent.PURGED))
    forgotten = 0
    for cluster in clusters:
        try:
            with task_transaction(), organization_scope(cluster.organization_id):
                if locks.try_lock("cluster", cluster.pk):
                    _remove_data(cluster)
        except (MetadataError, OSError) as error:
            logger.warning("purged.later", extra={"cluster": cluster.pk, "error": str(error)})
        except Exception:
            # One cluster must not keep the others from being removed.
            logger.exception("purged.failed", extra={"cluster": cluster.pk})
        else:
            forgotten += 1
    return forgotten


def _orphans() -> tuple[str, ...]:
    """The orphans that the keeper reports: clusters without a spec and without a `Removal`.

    A purged one is among them where its `Removal` was lost with the metadata.
    """
    health = cell_health()
    return () if health is None else health.orphans


def spec_of(cluster: Cluster) -> ClusterSpec:
    """The spec for the cell, from the row and the limits that the cell enforces."""
    stays_awake = cluster.scale_min or cluster.schedule_awake
    idle_ms = reconcile.NEVER_MS if stays_awake else cluster.idle_timeout_s * 1000
    if cluster.sleep_wanted:
        idle_ms = reconcile.SLEEP_SOON_MS
    state: SpecState = "active" if cluster.may_run else "suspended"
    if cluster.intent != Intent.ACTIVE:
        state = "deleted"
    return ClusterSpec(
        id=cluster.pk,
        name=cluster.name,
        organization_id=cluster.organization_id,
        generation=cluster.generation,
        state=state,
        scale=cluster.scale,
        idle_timeout_ms=idle_ms,
        ports=tuple(cluster.ports),
        host=cluster.host,
        connections_max=_limit_of_cluster(cluster, "connections"),
        wakes_per_minute_max=_limit_of_cluster(cluster, "wakes_per_minute"),
        deletions=tuple((since_ms, until_ms) for since_ms, until_ms in cluster.deletions),
    )


def _limit_of_cluster(cluster: Cluster, name: str) -> int:
    return limit_of(name, organization_id=cluster.organization_id, cluster_id=cluster.pk)


def desired_of(cluster: Cluster, operation: Operation | None) -> reconcile.DesiredCluster:
    """The desired state of a cluster, from its row, for `reconcile.plan_actions`."""
    running = None
    if operation is not None:
        running = reconcile.RunningOperation(
            type=OperationType(operation.type),
            since_ms=unix_ms(operation.began_at),
            age_s=(now() - operation.began_at) / timedelta(seconds=1),
        )
    return reconcile.DesiredCluster(
        spec=spec_of(cluster),
        traffic_limit=traffic_limit_of(cluster),
        operation=running,
        sample_data=cluster.sample_data == SampleData.WANTED,
        purge=_purge_is_due(cluster),
        limits=limits_of_cluster(cluster=cluster),
    )


def traffic_limit_of(cluster: Cluster) -> TrafficLimit | None:
    """What a cluster's row says of the traffic of clients, as the cell stores it."""
    limit = cluster.traffic_limit
    if limit is None:
        return None
    kind = cast(TrafficLimitKind, limit.kind)
    return TrafficLimit(kind=kind, reason=limit.reason, bytes_per_s=limit.bytes_per_s)


def _date_deletions(cluster: Cluster, observed: reconcile.Observed) -> bool:
    """Moves the start of a deletion that the cell learns of late, in the row as in the cell.

    Returns False, and moves nothing, where the row changed since it was read.
    """
    known = [(since_ms, until_ms) for since_ms, until_ms in cluster.deletions]
    reported = {since_ms for since_ms, _ in observed.spec.deletions} if observed.spec else set()
    dated = reconcile.date_deletions(known, reported=reported, now_ms=unix_ms(now()))
    if dated == known:
        return True
    cluster.deletions = [list(deletion) for deletion in dated]
    unchanged = Cluster.objects.filter(pk=cluster.pk, generation=cluster.generation)
    moved = unchanged.update(deletions=cluster.deletions)
    commit_so_far()
    return bool(moved)


def _purge_is_due(cluster: Cluster) -> bool:
    """Whether a cluster can no longer be restored, and its usage is metered.

    The usage of an hour that is lost is waited for no longer than `METER_WAIT_MAX`; it is not
    billed.
    """
    deleted_at, purge_at = cluster.deleted_at, cluster.purge_at
    if cluster.intent == Intent.PURGING:
        return purge_allowed(cluster=cluster)
    if cluster.intent != Intent.DELETED or deleted_at is None or purge_at is None:
        return False
    if purge_at > now():
        return False
    if not purge_allowed(cluster=cluster):
        return False
    if is_metered(cluster_id=cluster.pk, until=deleted_at + LAST_USE):
        return True
    overdue = purge_at + METER_WAIT_MAX <= now()
    if overdue:
        logger.warning("purge.unmetered", extra={"cluster": cluster.pk})
    return overdue


def observe_cluster(cluster: Cluster) -> reconcile.Observed:
    """The observed state of a cluster, from the cell's metadata store."""
    cell, store = cell_store(), cluster_store(cluster.pk)
    try:
        wants_samples = cluster.sample_data == SampleData.WANTED
        record = _record_of(store)
        return reconcile.Observed(
            known=True,
            spec=cell.spec(cluster.pk),
            status=cell.status(cluster.pk),
            wake=cell.wake(cluster.pk) is not None,
            record=record is not None,
            scale=None if record is None else record.scale,
            sample_topic=wants_samples and record is not None and has_sample_topic(store),
            traffic_limit=None if record is None else store.traffic_limit(),
            limits=ClusterLimits() if record is None else store.limits(),
        )
    except MetadataError as error:
        logger.warning("reconcile.unknown", extra={"cluster": cluster.pk, "error": str(error)})
        return reconcile.Observed(known=False)


def _record_of(store: ClusterStore) -> ClusterRecord | None:
    try:
        return store.record()
    except NotFoundError:
        return None


def _perform_actions(
    cluster: Cluster, operation: Operation | None, actions: list[reconcile.Action]
) -> bool:
    again = False
    for action in actions:
        match action:
            case reconcile.LookAgain():
                again = True
            case reconcile.ProduceSamples():
                pass  # `reconcile_cluster` does it once the lock is released
            case reconcile.Purge():
                _purge_cluster(cluster)
            case reconcile.MarkReconciled():
                Cluster.objects.filter(
                    pk=cluster.pk, reconciled_generation__lt=action.generation
                ).update(reconciled_generation=action.generation)
                commit_so_far()
            case reconcile.OperationProgress() | reconcile.Succeed() | reconcile.Fail():
                with transaction.atomic():
                    again |= _note_operation(cluster, operation, action)
                commit_so_far()
            case _:
                _write_to_cell(cluster, operation, action)
    return again


def _as_caused(operation: Operation | None) -> AbstractContextManager[None]:
    """Sets the ids of the operation's request for logs, also where the sweep does the work."""
    if operation is None:
        return nullcontext()
    return in_request(operation.request_id, operation.pk)


def _waker_of(operation: Operation | None) -> str:
    """The sender of a wake request for the keeper's log, with the ids of operation and request."""
    if operation is None:
        return WAKER
    return f"{WAKER} {operation.pk} {operation.request_id}"


def _write_to_cell(cluster: Cluster, operation: Operation | None, action: reconcile.Action) -> None:
    """Carries out an action that writes to the cell's metadata store. Raises `MetadataError`."""
    store = cluster_store(cluster.pk)
    match action:
        case reconcile.CreateRecord():
            store.create(scale=cluster.scale)
        case reconcile.SetScale():
            store.set_scale(action.scale)
        case reconcile.CreateSampleTopic():
            create_sample_topic(store)
        case reconcile.LimitTraffic():
            store.set_traffic_limit(action.limit)
        case reconcile.LiftTrafficLimit():
            store.set_traffic_limit(None)
        case reconcile.SetLimits():
            store.set_limits(action.limits)
        case reconcile.PutSpec():
            # The keeper starts brokers as soon as it sees the spec.
            allow_brokers(cluster.pk)
            cell_store().put_spec(action.spec)
        case reconcile.RequestWake():
            moment_ms = unix_ms(now())
            cell_store().request_wake(
                cluster.pk, requested_at_ms=moment_ms, by=_waker_of(operation)
            )


def _note_operation(
    cluster: Cluster,
    operation: Operation | None,
    action: reconcile.OperationProgress | reconcile.Succeed | reconcile.Fail,
) -> bool:
    """Notes progress or the end of the operation. Returns whether the desired state changed.

    Raises `Conflict` where the cluster's row changed since it was read.
    """
    if operation is None:
        return False
    if isinstance(action, reconcile.OperationProgress):
        note_progress(operation=operation, percent=action.percent)
        return False
    if isinstance(action, reconcile.Fail):
        error = {"code": action.code, "detail": action.detail}
        finish_operation(operation=operation, state=OperationState.FAILED, error=error)
    else:
        finish_operation(operation=operation, state=OperationState.SUCCEEDED)
    if operation.type == OperationType.CREATE_CLUSTER and cluster.provisioned_at is None:
        Cluster.objects.filter(pk=cluster.pk).update(provisioned_at=now())
    if cluster.sleep_wanted:
        # The cluster's own idle time applies again.
        bump_generation(cluster=cluster, sleep_wanted=False)
        return True
    return False


def _produce_samples(cluster: Cluster, observed: reconcile.Observed) -> None:
    """Produces the sample records. Where no broker can be reached, the sweep tries again.

    It has a lock of its own, because a broker may take seconds and two workers at a time would
    produce records twice.
    """
    with task_transaction(), organization_scope(cluster.organization_id):
        if observed.status is None or not locks.try_lock("samples", cluster.pk):
            return
        try:
            produce_samples(broker_access(cluster.pk, observed.status))
        except KafkaCallError as error:
            logger.info("samples.later", extra={"cluster": cluster.pk, "error": str(error)})
            return
        Cluster.objects.filter(pk=cluster.pk).update(sample_data=SampleData.DONE)


def _purge_cluster(cluster: Cluster) -> None:
    """Removes a cluster's data, and then what its row names.

    Before that the row says so, so that nobody restores it meanwhile, and a purge that dies is
    repeated. Raises `Conflict` where somebody restored it, and what `_remove_data` raises.
    """
    begun = Cluster.objects.filter(pk=cluster.pk, generation=cluster.generation)
    if not begun.exclude(intent__in=(Intent.ACTIVE, Intent.PURGED)).update(intent=Intent.PURGING):
        raise Conflict
    commit_so_far()
    permit = use_permit_to_purge(cluster=cluster) if deletions_held() else None
    commit_so_far()
    _remove_data(cluster, permit)
    purging = Cluster.objects.filter(pk=cluster.pk, intent=Intent.PURGING)
    if not purging.update(intent=Intent.PURGED, generation=F("generation") + 1):
        return
    release_ports(cluster_id=cluster.pk)
    cluster.credentials.all().delete()
    remove_samples(cluster_id=cluster.pk)
    cluster.operations.unfinished().update(state=OperationState.SUCCEEDED, finished_at=now())
    record_audit(
        actor=system_actor(cluster.organization_id),
        action="cluster.purge",
        target_type="cluster",
        target_id=cluster.pk,
        detail={"name": cluster.name},
    )


def _remove_data(cluster: Cluster, permit: BreakGlass | None = None) -> None:
    """Removes all data of a cluster.

    The order matters. First the spec says `deleted`, so that no broker starts on data that is being
    removed. The `Removal` comes last, because with it the keeper removes the cluster's objects and
    files.

    Raises `MetadataError`, `OSError`.
    """
    reported = cell_store().spec(cluster.pk)
    if reported is not None and reported.state != "deleted":
        # The generation of the stored spec is kept: a worker that hung may have written a newer one
        # than the row has.
        cell_store().put_spec(replace(reported, state="deleted"))
    forbid_brokers(cluster.pk)
    cluster_store(cluster.pk).remove_all()
    with outside_transaction("the cluster's storage"):
        remove_storage(cluster.pk)
    report_purge(cluster=cluster, permit=permit)
    cell_store().remove_spec(cluster.pk)
