"""Begins operations in the transaction of their change; the reconciling worker finishes them."""

from __future__ import annotations

import logging
from collections.abc import Collection

from console.base.common.clock import now
from console.base.common.requests import current_request_id, in_request
from provisioning.choices import UNFINISHED, OperationState, OperationType
from provisioning.errors import OperationInProgress
from provisioning.models import Cluster, Operation

logger = logging.getLogger(__name__)


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
        with in_request(operation.request_id, operation.pk):
            fields = {"type": operation.type, "state": state.value, "cluster": operation.cluster_id}
            logger.info("operation.finished", extra=fields)
    return bool(changed)
