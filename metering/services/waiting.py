"""Stores whose calls interrupt the transaction of the request or task that makes them."""

from __future__ import annotations

from collections.abc import Iterator

from console.base.common.transactions import outside_transaction
from metering.events.store import RemovingStore


def waited_for(store: RemovingStore, what: str) -> RemovingStore:
    """The same store; what waits for it does so outside of its transaction. `what` names it."""
    return _WaitedFor(store, what)


class _WaitedFor:
    """See `UsageStore`."""

    def __init__(self, store: RemovingStore, what: str) -> None:
        self._store = store
        self._what = what

    def put_new(self, key: str, data: bytes) -> bool:
        with outside_transaction(self._what):
            return self._store.put_new(key, data)

    def get(self, key: str) -> bytes:
        with outside_transaction(self._what):
            return self._store.get(key)

    def remove(self, prefix: str) -> int:
        with outside_transaction(self._what):
            return self._store.remove(prefix)

    def list(self, prefix: str) -> Iterator[str]:
        keys = self._store.list(prefix)
        # The caller may ask the database between two keys.
        while True:
            with outside_transaction(self._what):
                key = next(keys, None)
            if key is None:
                return
            yield key
