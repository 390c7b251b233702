"""Access to a cell: its metadata store, its secret, and the brokers of its clusters.

This is the thin edge between provisioning and the data plane. Errors of the metadata store and of
brokers are raised here as the errors that the API shows, and every call interrupts the transaction
of its request or task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from typing_extensions import override

from brokers import _core
from brokers import errors as metadata
from brokers.etcd import Etcd
from brokers.etcd_access import allow_cluster, forbid_cluster
from brokers.locations import metadata_location
from brokers.metadata import CellStore, ClusterStore
from brokers.metadata_records import ClusterStatus
from brokers.secrets import metadata_password, read_cell_secret, super_password
from console.base.common.away import Answering
from console.base.common.conf import config
from console.base.common.errors import (
    AppError,
    Conflict,
    FieldError,
    LimitReached,
    NameTaken,
    NotFound,
    PlatformError,
    Quota,
    Unavailable,
    ValidationFailed,
)
from console.base.common.transactions import current_transaction, outside_transaction
from console.base.common.turns import Turns
from provisioning import kafka
from provisioning.errors import (
    GroupActive,
    KafkaRefused,
    KafkaUnreadable,
    OutcomeUnknown,
    QuotaUsedUp,
    RecordTooLarge,
)

logger = logging.getLogger(__name__)

# What requests wait for, as messages name it.
METADATA = "the cell's metadata store"
BROKERS = "the cluster's brokers"
# A quota is overdrawn by one request at most, so its debt is paid within a few seconds.
QUOTA_RETRY_S = 5
# Whether the metadata store answers this process.
_store_answers = Answering(
    "metadata",
    failures=(metadata.UnavailableError, metadata.UnknownOutcomeError),
    refusal=lambda: metadata.UnavailableError("the metadata store hung a moment ago"),
)

# So many calls of the metadata store a web process makes at a time for requests, and for those of
# one organization while there are others and while there are none: a call that reads a thousand
# topics takes long, and the next one waits for it.
CALLS_MAX, CALLS_PER_ORGANIZATION, CALLS_ALONE = 16, 1, 4
_store_turns = Turns(
    CALLS_MAX,
    "Too many requests wait for the cell's metadata at this moment.",
    places_per_key=CALLS_PER_ORGANIZATION,
    places_alone=CALLS_ALONE,
)
# Whether the calls of this request only wait, and so need no turn.
_only_waits: ContextVar[bool] = ContextVar("only_waits", default=False)


def cell_store() -> CellStore:
    """The cell's metadata store, opened once a process; a forked child opens it anew by itself."""
    return _open_store(config().cell.metadata)


@cache
def _open_store(location: str) -> CellStore:
    return CellStore(location, around=_asking_store)


@contextmanager
def _asking_store() -> Iterator[None]:
    """Runs a call of the metadata store outside of the caller's transaction.

    A task does not ask a store that hung a moment ago: `UnavailableError` is raised at once. The
    requests of an organization take turns, as all of a process wait for the same store: one whose
    turn does not come raises `Unavailable`.
    """
    with outside_transaction(METADATA):
        asker = current_transaction()
        if asker is None:
            yield
        elif asker.of_task:
            with _store_answers.asking():
                yield
        elif _only_waits.get():
            yield
        else:
            with _store_turns.turn(asker.organization_id or f"address:{asker.network}"):
                yield


@contextmanager
def waiting_for_brokers() -> Iterator[None]:
    """Within the block, calls of the metadata store take no turns: they wait for brokers there."""
    before = _only_waits.set(True)
    try:
        yield
    finally:
        _only_waits.reset(before)


def cluster_store(cluster_id: str) -> ClusterStore:
    """The part of the cell's metadata store that belongs to one cluster."""
    return cell_store().cluster(cluster_id)


def allow_brokers(cluster_id: str) -> None:
    """Gives a cluster's brokers access to its own metadata, where the store has users.

    Repeating it changes nothing. Raises `MetadataError`.
    """
    etcd = _guarded_etcd(config().cell.metadata)
    if etcd is not None:
        secret = _secret(str(config().cell.secret))
        with _asking_store():
            allow_cluster(etcd, cluster_id, metadata_password(secret, cluster_id))


def forbid_brokers(cluster_id: str) -> None:
    """Takes the brokers' access back, also where there is none. Raises `MetadataError`."""
    etcd = _guarded_etcd(config().cell.metadata)
    if etcd is not None:
        with _asking_store():
            forbid_cluster(etcd, cluster_id)


def metadata_out_of_space() -> bool | None:
    """Whether the metadata store refuses all writes because its quota is reached.

    None where that is not known. The keeper cannot report it, because a report is a write.
    """
    etcd = _etcd(config().cell.metadata)
    if etcd is None:
        return False
    try:
        with _asking_store():
            return etcd.status().out_of_space
    except metadata.MetadataError as error:
        logger.warning("cell.space_unknown error=%s", error)
        return None


def _guarded_etcd(location: str) -> Etcd | None:
    """The cell's etcd where it has users, of which the service is one; otherwise None."""
    etcd = _etcd(location)
    return None if etcd is None or etcd.location.user is None else etcd


@cache
def _etcd(location: str) -> Etcd | None:
    """The cell's etcd; None where the cell's metadata is in SQLite."""
    place = metadata_location(location)
    return None if isinstance(place, Path) else Etcd(place)


def broker_access(cluster_id: str, status: ClusterStatus) -> kafka.Access:
    """Access to the brokers that a cluster's status names, as the control plane's own user."""
    bootstrap = ",".join(broker.kafka for broker in status.brokers)
    password = super_password(_secret(str(config().cell.secret)), cluster_id)
    return _Access(kafka.shared_clients(), kafka.Connection(bootstrap, password))


class _Access(kafka.Access):
    """Access whose calls interrupt a task's transaction. For requests `kafka_errors` does it.

    Where a request's call computes, the request has its turn.
    """

    @override
    @contextmanager
    def computing(self) -> Iterator[Callable[[float], None]]:
        request = current_transaction()
        with super().computing() if request is None else request.compute() as charge:
            yield charge

    @override
    @contextmanager
    def client(self) -> Iterator[_core.KafkaClient]:
        task = current_transaction()
        waits = task is None or task.of_task
        with outside_transaction(BROKERS) if waits else nullcontext(), super().client() as lent:
            yield lent


@cache
def _secret(path: str) -> bytes:
    return read_cell_secret(path)


@contextmanager
def metadata_errors() -> Iterator[None]:
    """Raises a `MetadataError` of the block as the `AppError` of `app_error`."""
    try:
        yield
    except metadata.MetadataError as error:
        raise app_error(error) from error


def app_error(error: metadata.MetadataError) -> AppError:  # noqa: PLR0911 (one each)
    """The API's error for an error of the metadata store."""
    text = str(error)
    match error:
        case metadata.NotFoundError():
            return NotFound()
        case metadata.ExistsError():
            return NameTaken(text)
        case metadata.InvalidError():
            field = getattr(error, "field", None)
            pointer = f"/{field}" if field else "/"
            return ValidationFailed(errors=[FieldError(pointer, "invalid", text)])
        case metadata.LimitReachedError():
            # An empty text stands for the error's own title.
            return LimitReached("", quota=Quota(error.name, error.limit, error.used))
        case metadata.TooLargeError():
            return RecordTooLarge(text)
        case metadata.ConflictError():
            return Conflict(text)
        case metadata.UnknownOutcomeError():
            return OutcomeUnknown()
        case metadata.UnavailableError():
            return Unavailable("The cell's metadata store does not answer.")
        case _:
            return PlatformError()


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Raises a `KafkaCallError` of the block as the `AppError` that the API shows for it.

    The block runs outside of the caller's transaction (`outside_transaction`).
    """
    try:
        with outside_transaction(BROKERS):
            yield
    except kafka.GroupActiveError as error:
        raise GroupActive(error.detail, extra={"kafka_error": error.name}) from error
    except (kafka.UnknownGroupError, kafka.UnknownPartitionError) as error:
        raise NotFound(error.detail) from error
    except kafka.ThrottledError as error:
        raise QuotaUsedUp(error.detail, retry_after_s=QUOTA_RETRY_S) from error
    except kafka.RefusedError as error:
        raise KafkaRefused(error.detail, extra={"kafka_error": error.name}) from error
    except kafka.UndecodableError as error:
        raise KafkaUnreadable(
            "Something that the cluster's brokers hold (a record, a group, an assignment) cannot be"
            " decoded here. The cluster itself and its clients are not affected."
        ) from error
    except kafka.BusyError as error:
        detail = "Too many requests wait for the cluster's brokers at this moment."
        raise Unavailable(detail, retry_after_s=1) from error
    except kafka.NotReadyError as error:
        raise Unavailable(f"The cluster's brokers answer {error.name}: {error.detail}.") from error
    except kafka.KafkaCallError as error:
        raise Unavailable("The cluster's brokers do not answer.") from error
