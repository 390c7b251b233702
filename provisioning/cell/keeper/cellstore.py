"""The keeper's `Store` over `brokers.metadata.CellStore`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from brokers import metadata
from brokers.errors import BrokerError
from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX, Sample
from provisioning.cell.keeper.records import (
    ClusterPhase,
    DesiredClusters,
    Spec,
    SpecState,
    Status,
    StoreError,
    Wake,
)
from provisioning.cell.notes import (
    CellHealth,
    Removal,
    health_of,
    move_earlier_notes,
    put_health,
    removal_of,
)

WATCHED = ("spec/", "wake/")


class CellRecords:
    """The specs, statuses, wake requests and notes of a cell. Every call raises `StoreError`.

    While `leads` returns False nothing is written, because another keeper may have the cell.
    """

    def __init__(self, location: str, leads: Callable[[], bool] = lambda: True) -> None:
        self._store = metadata.CellStore(location)
        self._leads = leads

    def desired(self) -> DesiredClusters:
        """See `Store.desired`."""
        with _as_store_error():
            # In this order: a cluster has a spec before anybody can request its wake, so a wake
            # request without a spec is one of a cluster that is gone.
            wakes = self._store.wakes()
            specs = self._store.specs()
        return DesiredClusters(
            specs={cluster_id: _spec_from_record(spec) for cluster_id, spec in specs.items()},
            wakes={
                cluster_id: Wake(wake.requested_at_ms, wake.by, wake.revision)
                for cluster_id, wake in wakes.items()
            },
            # The lower one, so that the watch reports changes between the two reads again.
            revision=min(specs.revision, wakes.revision),
        )

    def statuses(self) -> Mapping[str, Status]:
        """See `Store.statuses`."""
        with _as_store_error():
            statuses = self._store.statuses()
        return {cluster_id: _status_from_record(status) for cluster_id, status in statuses.items()}

    def put_status(self, cluster_id: str, status: Status) -> None:
        """See `Store.put_status`."""
        record = metadata.ClusterStatus(
            observed_generation=status.observed_generation,
            phase=status.phase.value,
            since_ms=status.since_ms,
            brokers=status.brokers,
            connections=status.connections,
            restarts=status.restarts,
            message=status.message,
            started_for=status.started_for,
        )
        self._check_leads()
        with _as_store_error():
            self._store.put_status(cluster_id, record)

    def remove_wake(self, cluster_id: str, revision: int) -> None:
        """See `Store.remove_wake`."""
        self._check_leads()
        with _as_store_error():
            self._store.remove_wake(cluster_id, revision)

    def earlier_samples(self) -> Mapping[str, Sample]:
        """See `Store.earlier_samples`."""
        self._check_leads()
        with _as_store_error():
            return move_earlier_notes(self._store)

    def remove_earlier_sample(self, cluster_id: str) -> None:
        """See `Store.remove_earlier_sample`."""
        self._check_leads()
        with _as_store_error():
            self._store.remove_sample(cluster_id)

    def removal(self, cluster_id: str) -> Removal | None:
        """See `Store.removal`."""
        with _as_store_error():
            return removal_of(self._store, cluster_id)

    def forget(self, cluster_id: str) -> None:
        """See `Store.forget`."""
        with _as_store_error():
            self._store.remove_cluster(cluster_id)

    def health(self) -> CellHealth | None:
        """See `Store.health`."""
        with _as_store_error():
            return health_of(self._store)

    def put_health(self, health: CellHealth) -> None:
        """See `Store.put_health`."""
        with _as_store_error():
            put_health(self._store, health)

    def watch(self, after_revision: int, timeout_s: float) -> int:
        """See `Store.watch`."""
        with _as_store_error():
            changes = self._store.watch(WATCHED, after_revision, timeout_s)
        return changes[-1].revision if changes else after_revision

    def interrupt(self) -> None:
        """See `Store.interrupt`."""
        with _as_store_error():
            self._store.interrupt()

    def _check_leads(self) -> None:
        if not self._leads():
            message = "this keeper has lost the lease of the cell, and writes nothing"
            raise StoreError(message)


@contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    # ValueError, TypeError and KeyError come from records of a newer release, whose fields differ.
    except (BrokerError, OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(str(error) or type(error).__name__) from error


def _spec_from_record(spec: metadata.ClusterSpec) -> Spec:
    # A control plane of an earlier release may have stored more brokers than can share a cluster.
    scale = min(spec.scale, BROKERS_PER_CLUSTER_MAX)
    return Spec(
        cluster_id=spec.id,
        generation=spec.generation,
        state=SpecState(spec.state),
        scale=scale,
        idle_timeout_ms=spec.idle_timeout_ms,
    )


def _status_from_record(status: metadata.ClusterStatus) -> Status:
    return Status(
        observed_generation=status.observed_generation,
        phase=ClusterPhase(status.phase),
        since_ms=status.since_ms,
        brokers=status.brokers,
        connections=status.connections,
        restarts=status.restarts,
        message=status.message,
        started_for=status.started_for,
    )
