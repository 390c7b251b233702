"""Makes cells have what is wanted. Safe to repeat, to lose and to run twice at a time."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta

from django.db.models import F
from prometheus_client import Counter

from brokers.errors import MetadataError, NotFoundError
from brokers.metadata import ClusterStore
from brokers.metadata_records import ClusterRecord, ClusterSpec, SpecState
from console.base.common import locks
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.clock import now, unix_ms
from console.base.common.metered import is_metered
from console.base.common.requests import in_request
from console.base.common.tenancy import organization_scope, system_scope
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
from provisioning.clusters.services.clusters import bump_generation
from provisioning.clusters.services.deletion_guard import (
    cell_health,
    deletions_held,
    purge_allowed,
    tell_purged,
    use_permit,
)
from provisioning.clusters.services.operations import finish_operation, note_progress
from provisioning.clusters.services.placement import release_ports
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
# Who wants clusters awake that no client wants.
WAKER = "control-plane"
# Of those with nothing known to do, so many are looked at in a sweep, the longest unseen first.
RECHECKED_A_SWEEP = 50
# For so long after an operation began its cluster is looked at again and again.
CHASED_S = 120.0
# Long after its deletion no broker of a cluster runs any more, and none uses anything.
LAST_USE = timedelta(hours=1)
# What the meter has not found by then is lost to it, and the customer's data is promised to go.
METER_WAIT_MAX = timedelta(days=30)


def reconcile_cluster(*, organization_id: str, cluster_id: str, wait: bool = True) -> bool:
    """Does what `reconcile.plan` says; tells whether to look again soon.

    Without `wait` nothing is done where another worker is at it.

    Never raises for a cell or storage that does not answer: the operation stays as it is, and the
    sweep comes back.
    """
    with organization_scope(organization_id):
        if wait:
            # Whoever waits here sees what the other did. A reconcile is short.
            locks.lock("cluster", cluster_id)
        elif not locks.try_lock("cluster", cluster_id):
            return False
        # The row is locked from its reading on: whoever restores a cluster that is being purged
        # waits, and finds it gone.
        rows = Cluster.objects.not_purged().select_for_update(no_key=True)
        cluster = rows.for_organization(organization_id).filter(pk=cluster_id).first()
        if cluster is None:
            return False
        Cluster.objects.filter(pk=cluster_id).update(checked_at=now())
        operation = cluster.operations.unfinished().first()
        due_at = follow_schedules(cluster=cluster)
        observed = observe(cluster)
        if observed.known:
            _date_deletions(cluster, observed)
        wanted = wanted_of(cluster, operation)
        actions = reconcile.plan(wanted, observed)
        # What takes longer is left to the sweep: a cell that is away is not asked twice a second.
        chased = wanted.operation is not None and wanted.operation.age_s < CHASED_S
        try:
            with _as_caused(operation):
                again = _perform(cluster, operation, actions)
            if observed.known:
                look_again_at(cluster=cluster, moment=due_at)
            if observed.known and cluster.intent == Intent.ACTIVE:
                repair_credentials(cluster=cluster)
            RECONCILES.labels(
                "again" if again else "settled" if observed.known else "unknown"
            ).inc()
        except (MetadataError, OSError) as error:
            RECONCILES.labels("failed").inc()
            logger.warning("reconcile.failed", extra={"cluster": cluster_id, "error": str(error)})
            return chased
    if reconcile.ProduceSamples() in actions:
        _produce_samples(cluster, observed)
    return again and chased


def sweep_clusters() -> int:
    """Reconciles every cluster with something left to do, and some others; gives how many.

    In the end it alone would do: tasks only make it quicker.
    """
    with system_scope():
        moment = now()
        urgent = Cluster.objects.to_recheck(moment=moment, deleted_before=moment - RESTORABLE)
        rest = Cluster.objects.not_purged().order_by(F("checked_at").asc(nulls_first=True), "id")
        found = dict(urgent.values_list("pk", "organization_id"))
        found |= dict(rest.values_list("pk", "organization_id")[:RECHECKED_A_SWEEP])
    for cluster_id, organization_id in found.items():
        try:
            # Sweep after sweep would wait for a long purge, until no worker is left.
            reconcile_cluster(organization_id=organization_id, cluster_id=cluster_id, wait=False)
            ingest_protocol_changes(organization_id=organization_id, cluster_id=cluster_id)
        except Exception:
            # One cluster must not keep the sweep from those behind it.
            logger.exception("sweep.failed", extra={"cluster": cluster_id})
    forget_purged()
    settle_announcements()
    return len(found)


def forget_purged() -> int:
    """Removes what the cell was told of a cluster after it was purged; gives of how many.

    By a worker that hung until somebody else had its lock, or a call that arrived late: nothing is
    stored by then that could refuse it. What no row tells of stays: it may be younger than the
    backup that the rows came from.
    """
    try:
        told = [*cell_store().specs(), *_orphans()]
    except (MetadataError, OSError) as error:
        logger.warning("purged.later", extra={"error": str(error)})
        return 0
    with system_scope():
        found = list(Cluster.objects.filter(pk__in=told, intent=Intent.PURGED))
    forgotten = 0
    for cluster in found:
        try:
            with organization_scope(cluster.organization_id):
                if locks.try_lock("cluster", cluster.pk):
                    _remove_data(cluster)
        except (MetadataError, OSError) as error:
            logger.warning("purged.later", extra={"cluster": cluster.pk, "error": str(error)})
        except Exception:
            # One cluster must not keep those behind it.
            logger.exception("purged.failed", extra={"cluster": cluster.pk})
        else:
            forgotten += 1
    return forgotten


def _orphans() -> tuple[str, ...]:
    """Clusters that the keeper has something of and nobody told it of: a purged one may be among
    them, whose word was lost with the metadata."""
    health = cell_health()
    return () if health is None else health.orphans


def spec_of(cluster: Cluster) -> ClusterSpec:
    """What the cell is told: the row, and the limits that the cell enforces."""
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
        connections_max=_limit(cluster, "connections"),
        wakes_per_minute_max=_limit(cluster, "wakes_per_minute"),
        deletions=tuple((since_ms, until_ms) for since_ms, until_ms in cluster.deletions),
    )


def _limit(cluster: Cluster, name: str) -> int:
    return limit_of(name, organization_id=cluster.organization_id, cluster_id=cluster.pk)


def wanted_of(cluster: Cluster, operation: Operation | None) -> reconcile.Wanted:
    """What the row says, for `reconcile.plan`."""
    running = None
    if operation is not None:
        running = reconcile.RunningOperation(
            type=OperationType(operation.type),
            since_ms=unix_ms(operation.created_at),
            age_s=(now() - operation.created_at) / timedelta(seconds=1),
        )
    return reconcile.Wanted(
        spec=spec_of(cluster),
        produce_suspension=cluster.produce_suspended_reason,
        operation=running,
        sample_data=cluster.sample_data == SampleData.WANTED,
        purge=_purge_is_due(cluster),
    )


def _date_deletions(cluster: Cluster, observed: reconcile.Observed) -> None:
    """Has a deletion that the cell hears of late begin now, in the row as in the cell."""
    known = [(since_ms, until_ms) for since_ms, until_ms in cluster.deletions]
    told = {since_ms for since_ms, _ in observed.spec.deletions} if observed.spec else set()
    dated = reconcile.date_deletions(known, told=told, now_ms=unix_ms(now()))
    if dated != known:
        cluster.deletions = [list(each) for each in dated]
        Cluster.objects.filter(pk=cluster.pk).update(deletions=cluster.deletions)


def _purge_is_due(cluster: Cluster) -> bool:
    """It can no longer be restored, and every meter has what its data says of its usage.

    A meter that cannot have it, of an hour whose usage is lost, is waited for no longer than
    `METER_WAIT_MAX`; what it missed is not billed.
    """
    deleted_at, purge_at = cluster.deleted_at, cluster.purge_at
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


def observe(cluster: Cluster) -> reconcile.Observed:
    """What the cell tells of a cluster."""
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
            produce_suspension=None if record is None else store.produce_suspension(),
        )
    except MetadataError as error:
        logger.warning("reconcile.unknown", extra={"cluster": cluster.pk, "error": str(error)})
        return reconcile.Observed(known=False)


def _record_of(store: ClusterStore) -> ClusterRecord | None:
    try:
        return store.record()
    except NotFoundError:
        return None


def _perform(
    cluster: Cluster, operation: Operation | None, actions: list[reconcile.Action]
) -> bool:
    again = False
    for action in actions:
        match action:
            case reconcile.LookAgain():
                again = True
            case reconcile.ProduceSamples():
                pass  # brokers are asked when the lock is free again
            case reconcile.Purge():
                _purge(cluster)
            case reconcile.MarkReconciled():
                Cluster.objects.filter(
                    pk=cluster.pk, reconciled_generation__lt=action.generation
                ).update(reconciled_generation=action.generation)
            case reconcile.Progress() | reconcile.Succeed() | reconcile.Fail():
                again |= _note(cluster, operation, action)
            case _:
                _write(cluster, operation, action)
    return again


def _as_caused(operation: Operation | None) -> AbstractContextManager[None]:
    """Work on an operation goes by its ids, also where a sweep does it."""
    if operation is None:
        return nullcontext()
    return in_request(operation.request_id, operation.pk)


def _asker(operation: Operation | None) -> str:
    """Who asks a keeper for brokers, as its log shows it: with the ids that led here."""
    if operation is None:
        return WAKER
    return f"{WAKER} {operation.pk} {operation.request_id}"


def _write(cluster: Cluster, operation: Operation | None, action: reconcile.Action) -> None:
    """What goes to the cell's metadata store."""
    store = cluster_store(cluster.pk)
    match action:
        case reconcile.CreateRecord():
            store.create(scale=cluster.scale)
        case reconcile.SetScale():
            store.set_scale(action.scale)
        case reconcile.CreateSampleTopic():
            create_sample_topic(store)
        case reconcile.SuspendProduce():
            store.suspend_produce(action.reason)
        case reconcile.ResumeProduce():
            store.resume_produce()
        case reconcile.PutSpec():
            # The keeper starts brokers as soon as it sees the spec.
            allow_brokers(cluster.pk)
            cell_store().put_spec(action.spec)
        case reconcile.RequestWake():
            moment_ms = unix_ms(now())
            cell_store().request_wake(cluster.pk, requested_at_ms=moment_ms, by=_asker(operation))


def _note(
    cluster: Cluster,
    operation: Operation | None,
    action: reconcile.Progress | reconcile.Succeed | reconcile.Fail,
) -> bool:
    """How the operation stands; tells whether what is wanted changed by its end."""
    if operation is None:
        return False
    if isinstance(action, reconcile.Progress):
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
        # The idle time holds again.
        bump_generation(cluster=cluster, sleep_wanted=False)
        return True
    return False


def _produce_samples(cluster: Cluster, observed: reconcile.Observed) -> None:
    """Brokers that cannot be reached are no failure: the sweep comes back.

    Under a lock of its own: a broker may take seconds, and two workers at a time would produce
    twice.
    """
    with organization_scope(cluster.organization_id):
        if observed.status is None or not locks.try_lock("samples", cluster.pk):
            return
        try:
            produce_samples(broker_access(cluster.pk, observed.status))
        except KafkaCallError as error:
            logger.info("samples.later", extra={"cluster": cluster.pk, "error": str(error)})
            return
        Cluster.objects.filter(pk=cluster.pk).update(sample_data=SampleData.DONE)


def _purge(cluster: Cluster) -> None:
    _remove_data(cluster, use_permit(cluster=cluster) if deletions_held() else None)
    release_ports(cluster_id=cluster.pk)
    cluster.credentials.all().delete()
    Cluster.objects.filter(pk=cluster.pk).update(
        intent=Intent.PURGED, generation=F("generation") + 1
    )
    cluster.operations.unfinished().update(state=OperationState.SUCCEEDED, finished_at=now())
    record_audit(
        actor=system_actor(cluster.organization_id),
        action="cluster.purge",
        target_type="cluster",
        target_id=cluster.pk,
        detail={"name": cluster.name},
    )


def _remove_data(cluster: Cluster, permit: BreakGlass | None = None) -> None:
    """The cell hears first that it may not run, so that nothing starts again on what is being
    removed, and last that all of it is gone: only then does the keeper remove its place.

    Raises `MetadataError`, `OSError`.
    """
    told = cell_store().spec(cluster.pk)
    if told is not None and told.state != "deleted":
        # Of its own generation: what a hung worker told last may be newer than the row.
        cell_store().put_spec(replace(told, state="deleted"))
    forbid_brokers(cluster.pk)
    cluster_store(cluster.pk).remove_all()
    remove_storage(cluster.pk)
    tell_purged(cluster=cluster, permit=permit)
    cell_store().remove_spec(cluster.pk)
