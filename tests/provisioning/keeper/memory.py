"""A metadata store in memory that can be made to fail, for the keeper's tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from brokers.metadata_records import Sample
from provisioning.cell.keeper.records import DesiredClusters, Spec, Status, StoreError, Wake
from provisioning.cell.notes import CellHealth, Removal


class MemoryStore:
    """A `Store` in memory. While `failing` is set, every call raises a `StoreError` with it."""

    def __init__(self) -> None:
        self.failing: str | None = None
        self.writes: list[tuple[str, Status]] = []
        self.earlier: dict[str, Sample] = {}
        self.removals: dict[str, Removal] = {}
        self.last_health: CellHealth | None = None
        self._specs: dict[str, Spec] = {}
        self._statuses: dict[str, Status] = {}
        self._wakes: dict[str, Wake] = {}
        self._revision = 1
        self._wanted_revision = 1
        self._interrupted = False
        self._changed = threading.Condition()

    def desired(self) -> DesiredClusters:
        """See `Store.desired`."""
        with self._changed:
            self._check()
            return DesiredClusters(dict(self._specs), dict(self._wakes), self._revision)

    def statuses(self) -> Mapping[str, Status]:
        """See `Store.statuses`."""
        with self._changed:
            self._check()
            return dict(self._statuses)

    def put_status(self, cluster_id: str, status: Status) -> None:
        """See `Store.put_status`."""
        with self._changed:
            self._check()
            self._statuses[cluster_id] = status
            self.writes.append((cluster_id, status))
            self._notify_watchers(desired=False)

    def remove_wake(self, cluster_id: str, revision: int) -> None:
        """See `Store.remove_wake`."""
        with self._changed:
            self._check()
            wake = self._wakes.get(cluster_id)
            if wake is not None and wake.revision == revision:
                del self._wakes[cluster_id]
                self._notify_watchers(desired=True)

    def earlier_samples(self) -> Mapping[str, Sample]:
        """See `Store.earlier_samples`."""
        with self._changed:
            self._check()
            return dict(self.earlier)

    def remove_earlier_sample(self, cluster_id: str) -> None:
        """See `Store.remove_earlier_sample`."""
        with self._changed:
            self._check()
            self.earlier.pop(cluster_id, None)
            self._notify_watchers(desired=False)

    def removal(self, cluster_id: str) -> Removal | None:
        """See `Store.removal`."""
        with self._changed:
            self._check()
            return self.removals.get(cluster_id)

    def forget(self, cluster_id: str) -> None:
        """See `Store.forget`."""
        with self._changed:
            self._check()
            self.removals.pop(cluster_id, None)
            self._statuses.pop(cluster_id, None)
            self._notify_watchers(desired=False)

    def health(self) -> CellHealth | None:
        """See `Store.health`."""
        with self._changed:
            self._check()
            return self.last_health

    def put_health(self, health: CellHealth) -> None:
        """See `Store.put_health`."""
        with self._changed:
            self._check()
            self.last_health = health
            self._notify_watchers(desired=False)

    def purge(self, cluster_id: str, **permit: Any) -> None:  # noqa: ANN401 (a removal's own)
        """Writes the `Removal` of a cluster, as the control plane does at a purge."""
        with self._changed:
            self.removals[cluster_id] = Removal(1, **permit)
        if cluster_id in self._specs:
            self.remove_spec(cluster_id)

    def watch(self, after_revision: int, timeout_s: float) -> int:
        """See `Store.watch`."""
        with self._changed:
            self._check()
            self._changed.wait_for(
                lambda: self._wanted_revision > after_revision or self._interrupted, timeout_s
            )
            self._check()
            return max(after_revision, self._wanted_revision)

    def interrupt(self) -> None:
        """See `Store.interrupt`."""
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def put_spec(self, spec: Spec) -> None:
        """Writes a spec, as the control plane does."""
        with self._changed:
            self._specs[spec.cluster_id] = spec
            self._notify_watchers(desired=True)

    def remove_spec(self, cluster_id: str) -> None:
        """Removes a spec, as restoring the metadata from an older backup does."""
        with self._changed:
            del self._specs[cluster_id]
            self._notify_watchers(desired=True)

    def request_wake(self, cluster_id: str, *, requested_at_ms: int, by: str) -> None:
        """Writes a wake request, as a gateway does."""
        with self._changed:
            if cluster_id not in self._wakes:
                self._wakes[cluster_id] = Wake(requested_at_ms, by, self._revision + 1)
                self._notify_watchers(desired=True)

    def peek_status(self, cluster_id: str) -> Status | None:
        """The stored record, also while calls fail."""
        return self._statuses.get(cluster_id)

    def peek_wake(self, cluster_id: str) -> Wake | None:
        """The stored record, also while calls fail."""
        return self._wakes.get(cluster_id)

    def fail(self, reason: str | None) -> None:
        """Makes every call fail from now on with this reason, or none (None)."""
        with self._changed:
            self.failing = reason
            self._changed.notify_all()

    def wait(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until something holds of the stored records."""
        with self._changed:
            return self._changed.wait_for(holds, timeout_s)

    def _notify_watchers(self, *, desired: bool) -> None:
        self._revision += 1
        if desired:
            self._wanted_revision = self._revision
        self._changed.notify_all()

    def _check(self) -> None:
        if self.failing is not None:
            raise StoreError(self.failing)
