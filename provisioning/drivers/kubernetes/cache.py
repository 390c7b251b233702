"""An image of some objects in memory: listed once, then watched.

A thread for each kind reads what the API server sends; nothing is lost by a connection that breaks,
because the watch goes on behind the last version that was seen, or everything is listed anew.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from provisioning.drivers.kubernetes.api import Api, ApiError, Lost, Watch
from provisioning.drivers.kubernetes.manifests import CLUSTER, Manifest

LOGGER = logging.getLogger(__name__)

# A watch is begun anew after this long; not all at the same moment.
WATCH_S = (240, 300)
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
GONE = 410


class Cache:
    """Objects of one kind with some labels, by namespace and name."""

    def __init__(self, api: Api, kind: str, selector: str, changed: Callable[[str], None]) -> None:
        """`changed` is called in the cache's thread with a cluster's id."""
        self.kind = kind
        self._api = api
        self._selector = selector
        self._changed = changed
        self._objects: dict[str, dict[str, Manifest]] = {}
        self._lock = threading.Lock()
        self._version = ""
        self._listed = threading.Event()
        self._closed = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {kind}", daemon=True)

    def start(self) -> None:
        """Begins to list and to watch."""
        self._thread.start()

    def close(self) -> None:
        """Ends the watch, and waits for its thread."""
        self._closed.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join()

    def wait_listed(self, timeout_s: float) -> bool:
        """Waits until there is an image; tells whether there is."""
        return self._listed.wait(timeout_s)

    @property
    def listed(self) -> bool:
        """Whether there is an image."""
        return self._listed.is_set()

    def of(self, namespace: str) -> list[Manifest]:
        """The objects in a namespace, by name."""
        with self._lock:
            found = self._objects.get(namespace, {})
            return [found[name] for name in sorted(found)]

    def all(self) -> list[Manifest]:
        """All objects, by namespace and name."""
        with self._lock:
            return [
                self._objects[namespace][name]
                for namespace in sorted(self._objects)
                for name in sorted(self._objects[namespace])
            ]

    def put(self, found: Manifest) -> None:
        """Remembers what a call of ours gave back, until the watch tells of it."""
        with self._lock:
            known = self._objects.get(_namespace(found), {}).get(found["metadata"]["name"])
            if known is None or _age(known) < _age(found):
                self._store(found)

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            try:
                if not self._version:
                    self._list()
                self._follow()
                failures = 0
            except ApiError as error:
                self._version = "" if error.status == GONE else self._version
                failures = 0 if error.status == GONE else self._pause(failures, error)
            except Lost as error:
                failures = self._pause(failures, error)

    def _pause(self, failures: int, error: Exception) -> int:
        if not self._closed.is_set():
            LOGGER.warning("watch of %s: %s", self.kind, error)
            self._closed.wait(RETRY_S[min(failures, len(RETRY_S) - 1)])
        return failures + 1

    def _list(self) -> None:
        listing = self._api.list(self.kind, self._selector)
        with self._lock:
            before = self._objects
            self._objects = {}
            for found in listing.items:
                self._store(found)
            after = self._objects
        self._version = listing.resource_version
        self._listed.set()
        for namespace in before.keys() | after.keys():
            if before.get(namespace) != after.get(namespace):
                known = {**before.get(namespace, {}), **after.get(namespace, {})}
                self._tell(next(iter(known.values())))

    def _follow(self) -> None:
        limit = random.randint(*WATCH_S)  # noqa: S311 (spread, not secrecy)
        self._watch = self._api.watch(self.kind, self._selector, self._version, limit)
        if self._closed.is_set():
            self._watch.close()
        for event in self._watch:
            self._version = event.object["metadata"]["resourceVersion"]
            if event.type == "BOOKMARK":
                continue
            with self._lock:
                if event.type == "DELETED":
                    self._forget(event.object)
                else:
                    self._store(event.object)
            self._tell(event.object)

    def _store(self, found: Manifest) -> None:
        self._objects.setdefault(_namespace(found), {})[found["metadata"]["name"]] = found

    def _forget(self, gone: Manifest) -> None:
        objects = self._objects.get(_namespace(gone), {})
        objects.pop(gone["metadata"]["name"], None)
        if not objects:
            self._objects.pop(_namespace(gone), None)

    def _tell(self, found: Manifest) -> None:
        """Whose label somebody took away is nobody's."""
        cluster_id = found["metadata"].get("labels", {}).get(CLUSTER)
        if cluster_id is not None:
            self._changed(cluster_id)


def _namespace(found: Manifest) -> str:
    named = found["metadata"]
    return str(named.get("namespace", named["name"]))


def _age(found: Manifest) -> int:
    # Opaque by contract, ordered by Kubernetes since 1.35 and in etcd's numbers ever since.
    return int(found["metadata"]["resourceVersion"])
