"""Errors of provisioning. Codes never change."""

from __future__ import annotations

from dataclasses import replace

from console.base.common.errors import AppError, Conflict, PlatformError, Unavailable, UserError


class OperationInProgress(Conflict):
    """Another operation of the cluster is not finished; `operation_id` names it."""

    code = "operation_in_progress"
    title = "Another operation is in progress"


class DeletionProtected(Conflict):
    """Deletion protection must be switched off first."""

    code = "deletion_protected"
    title = "The cluster is protected against deletion"


class DeletionsHeld(Conflict):
    """Too many brokers of the service are unhealthy: nothing is deleted until they are well."""

    code = "deletions_held"
    title = "Nothing is deleted at this moment"


class ClusterDeleted(Conflict):
    """A deleted cluster can only be restored."""

    code = "cluster_deleted"
    title = "The cluster is deleted"


class ClusterNotDeleted(Conflict):
    """There is nothing to restore."""

    code = "cluster_not_deleted"
    title = "The cluster is not deleted"


class ClusterSuspended(Conflict):
    """A suspended cluster keeps its data and does not run."""

    code = "cluster_suspended"
    title = "The cluster is suspended"


class ClusterNotSuspended(Conflict):
    """There is nothing to resume."""

    code = "cluster_not_suspended"
    title = "The cluster is not suspended"


class ClusterNeverSleeps(Conflict):
    """Its `scale.min` is 1."""

    code = "cluster_never_sleeps"
    title = "The cluster never sleeps"


class ProduceSuspended(Conflict):
    """The organisation's clusters take no records at the moment; `detail` says why."""

    code = "produce_suspended"
    title = "Producing is suspended"


class ClusterAsleep(Conflict):
    """What was asked for needs running brokers. `?wake=true` wakes them."""

    code = "cluster_asleep"
    title = "The cluster is asleep"


class ClusterStarting(Unavailable):
    """Its brokers do not serve yet. Worth repeating."""

    code = "cluster_starting"
    title = "The cluster is starting"


class RotationInProgress(Conflict):
    """Of a credential and the one that it replaces both authenticate: end the older one first."""

    code = "rotation_in_progress"
    title = "A rotation is in progress"


class CredentialReplaced(Conflict):
    """Another credential was made in its place; it only ends."""

    code = "credential_replaced"
    title = "The credential was replaced"


class GroupActive(Conflict):
    """The group has members."""

    code = "group_active"
    title = "The group is active"


class KafkaRefused(UserError):
    """The brokers refused; `kafka_error` is Kafka's name of the reason."""

    code = "kafka_refused"
    status = 422
    title = "Kafka refused the request"


class KafkaUnreadable(PlatformError):
    """What the brokers hold ended the process that read it."""

    code = "kafka_unreadable"
    status = 502
    title = "What the brokers hold cannot be read"


class UnknownRegion(UserError):
    """No cell is in this region."""

    code = "unknown_region"
    status = 422
    title = "There is no such region"


class CellFull(Unavailable):
    """The cell has no room for another cluster."""

    code = "no_capacity"
    title = "There is no room for another cluster"


class OutcomeUnknown(Unavailable):
    """The metadata store's answer was lost: the change may have been made. Read again."""

    code = "outcome_unknown"
    title = "It is unknown whether the change was made"


class RecordTooLarge(UserError):
    """The metadata store does not take a record of this size."""

    code = "too_large"
    status = 422
    title = "It is too large"


class TooManyStreams(UserError):
    """More live tails than one organisation may have open."""

    code = "too_many_streams"
    status = 429
    title = "Too many live tails"


def at_item(error: AppError, place: int) -> AppError:
    """The error of one of several: its pointers begin at its place in `items`."""
    error.errors = tuple(
        replace(each, pointer=f"/items/{place}{each.pointer}".rstrip("/")) for each in error.errors
    )
    return error
