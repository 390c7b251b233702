"""An image of some objects in memory: listed once, then watched.

A thread for each kind reads what the API server sends; nothing is lost by a connection that breaks,
because the watch goes on behind the last version that was seen, or everything is listed anew. Where
neither works for a while, the image is not `current`.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable

from provisioning.cell.drivers.kubernetes.api import Api, ApiError, Event, Lost, Watch
from provisioning.cell.drivers.kubernetes.manifests import CLUSTER, Manifest

LOGGER = logging.getLogger(__name__)

# A watch is begun anew after this long; not all at the same moment.
WATCH_S = (240, 300)
# An API server sends a bookmark about once a minute. Whose watch is silent for longer begins anew:
# nobody can tell it from one whose peer is gone.
SILENT_S = 150.0
# What has been open for as long has told of all that happened before.
SETTLED_S = 3.0
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
GONE = 410


class Cache:
    """Objects of one kind with some labels, by namespace and name."""

    def __init__(
        self,
        api: Api,
        kind: str,
        selector: str,
        changed: Callable[[str], None],
        stale_s: float,
    ) -> None:
        """`changed` is called in the cache's thread with a cluster's id. `stale_s`: for how long
        an image that is not watched is `current`."""
        self.kind = kind
        self._stale_s = stale_s
        self._api = api
        self._selector = selector
        self._changed = changed
        self._objects: dict[str, dict[str, Manifest]] = {}
        self._lock = threading.Lock()
        self._version = ""
        self._listed = threading.Event()
        self._closed = threading.Event()
        self._watch: Watch | None = None
        # How many changes were told; when the image was known to be right; since when it is
        # watched.
        self._told = 0
        self._right_at = -math.inf
        self._watched_since: float | None = None
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
    def current(self) -> bool:
        """Whether the image is of what is there now, or was so less than `stale_s` seconds ago."""
        moment, since = time.monotonic(), self._watched_since
        settled = since is not None and moment - since >= SETTLED_S
        return settled or moment - self._right_at < self._stale_s

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
            if self._version and int(self._version) >= _age(found):
                # It has told of that already, and of its end perhaps.
                return
            known = self._objects.get(_namespace(found), {}).get(found["metadata"]["name"])
            if known is None or _age(known) < _age(found):
                self._store(found)

    def drop(self, namespace: str, name: str) -> None:
        """Forgets what a call of ours found to be gone, before the watch tells of it."""
        with self._lock:
            self._forget(namespace, name)

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            told = self._told
            try:
                # A server that was restored from a backup knows no version as late as ours.
                if not self._version or failures >= len(RETRY_S):
                    self._list()
                self._follow()
                failures = 0
            except (ApiError, Lost) as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    self._version = ""
                failures = self._pause(failures if told == self._told else 0, error)

    def _pause(self, failures: int, error: Exception) -> int:
        if not self._closed.is_set():
            LOGGER.warning("watch of %s: %s", self.kind, error)
            self._closed.wait(RETRY_S[min(failures, len(RETRY_S) - 1)])
        return failures + 1

    def _list(self) -> None:
        asked_at = time.monotonic()
        listing = self._api.list(self.kind, self._selector)
        with self._lock:
            before = self._objects
            self._objects = {}
            for found in listing.items:
                self._store(found)
            after = self._objects
            self._version = listing.resource_version
        self._right_at = asked_at
        self._listed.set()
        for namespace in before.keys() | after.keys():
            if before.get(namespace) != after.get(namespace):
                known = {**before.get(namespace, {}), **after.get(namespace, {})}
                self._tell(next(iter(known.values())))

    def _follow(self) -> None:
        limit = random.randint(*WATCH_S)  # noqa: S311 (spread, not secrecy)
        self._watch = self._api.watch(
            self.kind, self._selector, self._version, limit_s=limit, silent_s=SILENT_S
        )
        if self._closed.is_set():
            self._watch.close()
        opened_at = heard_at = self._watched_since = time.monotonic()
        try:
            for event in self._watch:
                self._take(event)
                heard_at = self._right_at = time.monotonic()
        finally:
            moment = time.monotonic()
            # What was silent to its end may have been dead for all that time.
            if opened_at + SETTLED_S <= moment < heard_at + SILENT_S:
                self._right_at = moment
            self._watched_since = None

    def _take(self, event: Event) -> None:
        named = event.object["metadata"]
        self._told += 1
        with self._lock:
            self._version = named["resourceVersion"]
            if event.type == "DELETED":
                self._forget(_namespace(event.object), named["name"])
            elif event.type != "BOOKMARK":
                self._store(event.object)
        if event.type != "BOOKMARK":
            self._tell(event.object)

    def _store(self, found: Manifest) -> None:
        self._objects.setdefault(_namespace(found), {})[found["metadata"]["name"]] = found

    def _forget(self, namespace: str, name: str) -> None:
        objects = self._objects.get(namespace, {})
        objects.pop(name, None)
        if not objects:
            self._objects.pop(namespace, None)

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
