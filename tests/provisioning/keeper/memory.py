"""A metadata store in memory that can be made to fail, for the keeper's tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from provisioning.cell.keeper.records import Spec, Status, StoreError, Wake, Wanted
from provisioning.cell.notes import CellHealth, Removal


class MemoryStore:
    """As the keeper sees a cell's store. `failing` is what every call fails with."""

    def __init__(self) -> None:
        self.failing: str | None = None
        self.writes: list[tuple[str, Status]] = []
        self.samples: dict[str, tuple[int, Mapping[str, object]]] = {}
        self.removals: dict[str, Removal] = {}
        self.told: CellHealth | None = None
        self._specs: dict[str, Spec] = {}
        self._statuses: dict[str, Status] = {}
        self._wakes: dict[str, Wake] = {}
        self._revision = 1
        self._wanted_revision = 1
        self._interrupted = False
        self._changed = threading.Condition()

    def wanted(self) -> Wanted:
        """See `Store.wanted`."""
        with self._changed:
            self._check()
            return Wanted(dict(self._specs), dict(self._wakes), self._revision)

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
            self._tell(wanted=False)

    def remove_wake(self, cluster_id: str, revision: int) -> None:
        """See `Store.remove_wake`."""
        with self._changed:
            self._check()
            wake = self._wakes.get(cluster_id)
            if wake is not None and wake.revision == revision:
                del self._wakes[cluster_id]
                self._tell(wanted=True)

    def put_sample(self, cluster_id: str, taken_at_ms: int, content: Mapping[str, object]) -> None:
        """See `Store.put_sample`."""
        with self._changed:
            self._check()
            self.samples[cluster_id] = (taken_at_ms, content)
            self._tell(wanted=False)

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
            self._tell(wanted=False)

    def health(self) -> CellHealth | None:
        """See `Store.health`."""
        with self._changed:
            self._check()
            return self.told

    def put_health(self, health: CellHealth) -> None:
        """See `Store.put_health`."""
        with self._changed:
            self._check()
            self.told = health
            self._tell(wanted=False)

    def purge(self, cluster_id: str, **permit: Any) -> None:  # noqa: ANN401 (a removal's own)
        """What the control plane does at the end."""
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
        """What the control plane does."""
        with self._changed:
            self._specs[spec.cluster_id] = spec
            self._tell(wanted=True)

    def remove_spec(self, cluster_id: str) -> None:
        """What happens where the metadata comes back from an older backup."""
        with self._changed:
            del self._specs[cluster_id]
            self._tell(wanted=True)

    def request_wake(self, cluster_id: str, *, requested_at_ms: int, by: str) -> None:
        """What a gateway does."""
        with self._changed:
            if cluster_id not in self._wakes:
                self._wakes[cluster_id] = Wake(requested_at_ms, by, self._revision + 1)
                self._tell(wanted=True)

    def peek_status(self, cluster_id: str) -> Status | None:
        """What is stored, also while calls fail."""
        return self._statuses.get(cluster_id)

    def peek_wake(self, cluster_id: str) -> Wake | None:
        """What is stored, also while calls fail."""
        return self._wakes.get(cluster_id)

    def fail(self, reason: str | None) -> None:
        """Has every call fail from now on, or none."""
        with self._changed:
            self.failing = reason
            self._changed.notify_all()

    def wait(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until something holds of what is stored."""
        with self._changed:
            return self._changed.wait_for(holds, timeout_s)

    def _tell(self, *, wanted: bool) -> None:
        self._revision += 1
        if wanted:
            self._wanted_revision = self._revision
        self._changed.notify_all()

    def _check(self) -> None:
        if self.failing is not None:
            raise StoreError(self.failing)
