"""Begins operations in the transaction of their change; the reconciling worker finishes them.

Operations that start brokers wait in their table for their organization's turn: so many of an
organization run at a time, the oldest ones. Whoever ends one has the next one looked at.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection

from django.db.models import Q

from console.base.common.clock import now
from console.base.common.outbox import enqueue_task
from console.base.common.requests import current_request_id, in_request
from provisioning.choices import UNFINISHED, OperationState, OperationType
from provisioning.errors import OperationInProgress
from provisioning.models import Cluster, Operation
from provisioning.querysets import OperationQuerySet

logger = logging.getLogger(__name__)

RECONCILE = "provisioning.reconcile_cluster"
# What has a cell start brokers, and how many of an organization do at a time.
STARTS = (OperationType.CREATE_CLUSTER, OperationType.WAKE_CLUSTER)
STARTS_PER_ORGANIZATION = 4


def begin_operation(
    *,
    cluster: Cluster,
    kind: OperationType,
    supersedes: Collection[OperationType] = (),
) -> Operation:
    """Begins an operation of a cluster whose row the caller has locked.

    It cancels an unfinished operation of the kinds `supersedes`. Raises `OperationInProgress` where
    one of another kind is unfinished.
    """
    require_idle(cluster=cluster, but_for=supersedes)
    for operation in cluster.operations.unfinished():
        finish_operation(operation=operation, state=OperationState.CANCELLED)
    operation = Operation.objects.create(
        organization_id=cluster.organization_id,
        cluster=cluster,
        type=kind,
        generation=cluster.generation,
        request_id=current_request_id(),
    )
    with in_request(operation.request_id, operation.pk):
        logger.info("operation.begun", extra={"type": kind.value, "cluster": cluster.pk})
    return operation


def require_idle(*, cluster: Cluster, but_for: Collection[OperationType] = ()) -> None:
    """Raises `OperationInProgress` for an unfinished operation that is not of a kind `but_for`."""
    kinds = {kind.value for kind in but_for}
    for operation in cluster.operations.unfinished():
        if operation.type not in kinds:
            raise OperationInProgress(
                f"{operation.type} is {operation.state}.", extra={"operation_id": operation.pk}
            )


def enqueue_reconcile(*, cluster: Cluster) -> None:
    """Has a worker reconcile the cluster after the commit."""
    _enqueue_reconcile(organization_id=cluster.organization_id, cluster_id=cluster.pk)


def admit_operation(*, operation: Operation) -> bool:
    """Whether an operation may run now, or has to wait until others of its organization end.

    The time of one that starts brokers counts from then on, and it keeps its place until it ends.
    """
    if operation.type not in STARTS or _has_place(operation):
        return True
    before = Q(created_at__lt=operation.created_at) | Q(
        created_at=operation.created_at, pk__lt=operation.pk
    )
    ahead = _unfinished_starts(operation.organization_id).exclude(pk=operation.pk)
    placed = Q(started_at__isnull=False) | Q(state=OperationState.RUNNING)
    if ahead.filter(before | placed).count() >= STARTS_PER_ORGANIZATION:
        return False
    operation.started_at = now()
    Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED).update(
        started_at=operation.started_at
    )
    return True


def clusters_that_wait() -> set[str]:
    """Ids of the clusters of all organizations whose operation waits for others to end."""
    starts = Operation.objects.unfinished().filter(type__in=STARTS)
    rows = starts.order_by("organization_id", "created_at", "id")
    ahead: Counter[str] = Counter()
    waiting = set()
    for organization_id, cluster_id in rows.values_list("organization_id", "cluster_id"):
        ahead[organization_id] += 1
        if ahead[organization_id] > STARTS_PER_ORGANIZATION:
            waiting.add(cluster_id)
    return waiting


def note_progress(*, operation: Operation, percent: int) -> None:
    """Writes the progress of an operation, unless it is finished or has come further."""
    Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED, progress__lte=percent).update(
        state=OperationState.RUNNING, progress=percent
    )


def finish_operation(
    *, operation: Operation, state: OperationState, error: dict[str, str] | None = None
) -> bool:
    """Gives an operation a final state, unless it has one; returns whether it was changed."""
    done = {"progress": 100} if state is OperationState.SUCCEEDED else {}
    changed = Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED).update(
        state=state, error=error, finished_at=now(), **done
    )
    if changed:
        if operation.type in STARTS:
            _begin_next(operation.organization_id)
        with in_request(operation.request_id, operation.pk):
            fields = {"type": operation.type, "state": state.value, "cluster": operation.cluster_id}
            logger.info("operation.finished", extra=fields)
    return bool(changed)


def _begin_next(organization_id: str) -> None:
    """Has those operations looked at that may run now."""
    first = _unfinished_starts(organization_id).order_by("created_at", "id")
    for operation in first[:STARTS_PER_ORGANIZATION]:
        if not _has_place(operation):
            _enqueue_reconcile(organization_id=organization_id, cluster_id=operation.cluster_id)


def _has_place(operation: Operation) -> bool:
    return operation.started_at is not None or operation.state == OperationState.RUNNING


def _unfinished_starts(organization_id: str) -> OperationQuerySet:
    rows = Operation.objects.for_organization(organization_id).unfinished()
    return rows.filter(type__in=STARTS)


def _enqueue_reconcile(*, organization_id: str, cluster_id: str) -> None:
    enqueue_task(
        task=RECONCILE,
        organization_id=organization_id,
        arguments={"organization_id": organization_id, "cluster_id": cluster_id},
    )
