"""Errors of provisioning. Clients know them by `code`, so a code never changes."""

from __future__ import annotations

from dataclasses import replace

from console.base.common.errors import AppError, Conflict, PlatformError, Unavailable, UserError


class OperationInProgress(Conflict):
    """Another operation of the cluster is not finished; the member `operation_id` names it."""

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
    """A cluster that was not deleted cannot be restored."""

    code = "cluster_not_deleted"
    title = "The cluster is not deleted"


class ClusterSuspended(Conflict):
    """A suspended cluster keeps its data and does not run."""

    code = "cluster_suspended"
    title = "The cluster is suspended"


class ClusterNotSuspended(Conflict):
    """A cluster that is not suspended on request cannot be resumed."""

    code = "cluster_not_suspended"
    title = "The cluster is not suspended"


class ClusterNeverSleeps(Conflict):
    """The cluster cannot be put to sleep: its `scale.min` is 1, or a schedule wants it awake."""

    code = "cluster_never_sleeps"
    title = "The cluster never sleeps"


class ProduceSuspended(Conflict):
    """The organization's clusters take no records at the moment; `detail` says why."""

    code = "produce_suspended"
    title = "Producing is suspended"


class FetchSuspended(Conflict):
    """The organization's clusters give out no records at the moment; `detail` says why."""

    code = "fetch_suspended"
    title = "Fetching is suspended"


class ClusterAsleep(Conflict):
    """The request needs running brokers. With `?wake=true` it starts them."""

    code = "cluster_asleep"
    title = "The cluster is asleep"


class ClusterStarting(Unavailable):
    """The cluster's brokers do not serve yet; the same request succeeds a little later."""

    code = "cluster_starting"
    title = "The cluster is starting"


class RotationInProgress(Conflict):
    """The credential and the one that it replaced both authenticate: end the older one first."""

    code = "rotation_in_progress"
    title = "A rotation is in progress"


class CredentialReplaced(Conflict):
    """The credential was rotated: only when it ends can be changed."""

    code = "credential_replaced"
    title = "The credential was replaced"


class NotDamaged(Conflict):
    """At this offset no damaged batch begins: it can be decoded, or the log begins behind it."""

    code = "not_damaged"
    title = "There is no damaged batch"


class GroupActive(Conflict):
    """The group has members, so its offsets cannot be changed."""

    code = "group_active"
    title = "The group is active"


class KafkaRefused(UserError):
    """The brokers refused the request; the member `kafka_error` is Kafka's name of the reason."""

    code = "kafka_refused"
    status = 422
    title = "Kafka refused the request"


class KafkaUnreadable(PlatformError):
    """Something that the brokers hold cannot be decoded; the process that tried may have ended."""

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
    """The metadata store's answer was lost, so the change may have been made: read it again."""

    code = "outcome_unknown"
    title = "It is unknown whether the change was made"


class RecordTooLarge(UserError):
    """The metadata store refuses a record of this size."""

    code = "too_large"
    status = 422
    title = "It is too large"


class QuotaUsedUp(UserError):
    """A quota of the cluster for all users or clients is used up for this key or member."""

    code = "quota_used_up"
    status = 429
    title = "The cluster's quota is used up"


class TooManyStreams(UserError):
    """The organization has as many live tails open as it may."""

    code = "too_many_streams"
    status = 429
    title = "Too many live tails"


def at_item(error: AppError, place: int) -> AppError:
    """The error of one of several `items`: its pointers begin with the item's place."""
    error.errors = tuple(
        replace(field_error, pointer=f"/items/{place}{field_error.pointer}".rstrip("/"))
        for field_error in error.errors
    )
    return error
