"""Operations: begun with the change that they are about, finished by the reconciling worker."""

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
    """A new operation of a cluster whose row the caller has locked.

    Cancels an unfinished one of the kinds that it `supersedes`. Raises `OperationInProgress`.
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
    """Raises `OperationInProgress` where one is unfinished that is not of the kinds `but_for`."""
    kinds = {kind.value for kind in but_for}
    for operation in cluster.operations.unfinished():
        if operation.type not in kinds:
            raise OperationInProgress(
                f"{operation.type} is {operation.state}.", extra={"operation_id": operation.pk}
            )


def note_progress(*, operation: Operation, percent: int) -> None:
    """Says how far it is; nothing of a finished one, and never back."""
    Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED, progress__lte=percent).update(
        state=OperationState.RUNNING, progress=percent
    )


def finish_operation(
    *, operation: Operation, state: OperationState, error: dict[str, str] | None = None
) -> bool:
    """Ends it; tells whether it did. What is final stays as it is."""
    done = {"progress": 100} if state is OperationState.SUCCEEDED else {}
    changed = Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED).update(
        state=state, error=error, finished_at=now(), **done
    )
    if changed:
        with in_request(operation.request_id, operation.pk):
            told = {"type": operation.type, "state": state.value, "cluster": operation.cluster_id}
            logger.info("operation.finished", extra=told)
    return bool(changed)
