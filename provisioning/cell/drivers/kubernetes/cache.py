"""A cache of the API server's objects of one kind: listed once, then updated by a watch.

Each cache has a thread that reads the events of its watch. A broken connection loses no event: the
next watch begins after the last version that was seen, or everything is listed again. Where neither
works for a while, the cache is not `current`.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable

from provisioning.cell.drivers.kubernetes.api import Api, ApiError, Event, Lost, ObjectWatch
from provisioning.cell.drivers.kubernetes.manifests import CLUSTER, Manifest

LOGGER = logging.getLogger(__name__)

# A watch is begun again after a random time of this range, so that not all are at the same moment.
WATCH_S = (240, 300)
# An API server sends a bookmark about once a minute. A watch that is silent for longer is begun
# again, because a silent watch looks the same as one whose peer is gone.
SILENT_S = 150.0
# A watch that has been open for this long has delivered all changes from before it was opened.
SETTLED_S = 3.0
RETRY_S = (0.2, 0.5, 1.0, 2.0, 5.0)
GONE = 410


class Cache:
    """The objects of one kind with some labels, by namespace and name."""

    def __init__(
        self,
        api: Api,
        kind: str,
        selector: str,
        changed: Callable[[str], None],
        stale_s: float,
    ) -> None:
        """`changed` is called in the cache's thread with the id of a cluster whose object changed.

        `stale_s`: for how long the cache counts as `current` while no watch is open.
        """
        self.kind = kind
        self._stale_s = stale_s
        self._api = api
        self._selector = selector
        self._notify = changed
        self._objects: dict[str, dict[str, Manifest]] = {}
        self._lock = threading.Lock()
        self._version = ""
        self._listed = threading.Event()
        self._closed = threading.Event()
        self._watch: ObjectWatch | None = None
        # How many events arrived; when the cache was last known to be right; since when a watch is
        # open (None: none is). The two times are of `time.monotonic`.
        self._changes = 0
        self._right_at = -math.inf
        self._watched_since: float | None = None
        self._thread = threading.Thread(
            target=self._list_and_watch, name=f"watch {kind}", daemon=True
        )

    def start(self) -> None:
        """Starts the thread that lists and watches."""
        self._thread.start()

    def close(self) -> None:
        """Ends the watch, and waits until its thread has ended."""
        self._closed.set()
        if self._watch is not None:
            self._watch.close()
        self._thread.join()

    def wait_listed(self, timeout_s: float) -> bool:
        """Waits for the first list. Returns whether it came within `timeout_s`."""
        return self._listed.wait(timeout_s)

    @property
    def current(self) -> bool:
        """Whether the cache is right now, or was right less than `stale_s` seconds ago."""
        moment, since = time.monotonic(), self._watched_since
        settled = since is not None and moment - since >= SETTLED_S
        return settled or moment - self._right_at < self._stale_s

    def of(self, namespace: str) -> list[Manifest]:
        """The objects in a namespace, sorted by name."""
        with self._lock:
            objects = self._objects.get(namespace, {})
            return [objects[name] for name in sorted(objects)]

    def all(self) -> list[Manifest]:
        """All objects, sorted by namespace and name."""
        with self._lock:
            return [
                self._objects[namespace][name]
                for namespace in sorted(self._objects)
                for name in sorted(self._objects[namespace])
            ]

    def put(self, manifest: Manifest) -> None:
        """Stores an object that one of our own calls returned, before the watch delivers it."""
        with self._lock:
            if self._version and int(self._version) >= _version_of(manifest):
                # The watch has delivered this version already, and perhaps also its deletion.
                return
            known = self._objects.get(_namespace_of(manifest), {}).get(manifest["metadata"]["name"])
            if known is None or _version_of(known) < _version_of(manifest):
                self._store_object(manifest)

    def drop(self, namespace: str, name: str) -> None:
        """Removes an object that one of our own calls deleted, before the watch delivers that."""
        with self._lock:
            self._forget_object(namespace, name)

    def _list_and_watch(self) -> None:
        failures = 0
        while not self._closed.is_set():
            changes_before = self._changes
            try:
                # After several failures everything is listed again: a server that was restored from
                # a backup has no version as late as ours.
                if not self._version or failures >= len(RETRY_S):
                    self._list_objects()
                self._follow_watch()
                failures = 0
            except (ApiError, Lost) as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    self._version = ""
                failures = self._pause_after(
                    failures if changes_before == self._changes else 0, error
                )

    def _pause_after(self, failures: int, error: Exception) -> int:
        if not self._closed.is_set():
            LOGGER.warning("watch of %s: %s", self.kind, error)
            self._closed.wait(RETRY_S[min(failures, len(RETRY_S) - 1)])
        return failures + 1

    def _list_objects(self) -> None:
        asked_at = time.monotonic()
        listing = self._api.list(self.kind, self._selector)
        with self._lock:
            before = self._objects
            self._objects = {}
            for manifest in listing.items:
                self._store_object(manifest)
            after = self._objects
            self._version = listing.resource_version
        self._right_at = asked_at
        self._listed.set()
        for namespace in before.keys() | after.keys():
            if before.get(namespace) != after.get(namespace):
                known = {**before.get(namespace, {}), **after.get(namespace, {})}
                self._notify_cluster(next(iter(known.values())))

    def _follow_watch(self) -> None:
        limit = random.randint(*WATCH_S)  # noqa: S311 (spread, not secrecy)
        self._watch = self._api.watch(
            self.kind, self._selector, self._version, limit_s=limit, silent_s=SILENT_S
        )
        if self._closed.is_set():
            self._watch.close()
        opened_at = heard_at = self._watched_since = time.monotonic()
        try:
            for event in self._watch:
                self._take_event(event)
                heard_at = self._right_at = time.monotonic()
        finally:
            moment = time.monotonic()
            # A watch that was silent until it ended may have been dead for all that time.
            if opened_at + SETTLED_S <= moment < heard_at + SILENT_S:
                self._right_at = moment
            self._watched_since = None

    def _take_event(self, event: Event) -> None:
        metadata = event.object["metadata"]
        self._changes += 1
        with self._lock:
            self._version = metadata["resourceVersion"]
            if event.type == "DELETED":
                self._forget_object(_namespace_of(event.object), metadata["name"])
            elif event.type != "BOOKMARK":
                self._store_object(event.object)
        if event.type != "BOOKMARK":
            self._notify_cluster(event.object)

    def _store_object(self, manifest: Manifest) -> None:
        self._objects.setdefault(_namespace_of(manifest), {})[manifest["metadata"]["name"]] = (
            manifest
        )

    def _forget_object(self, namespace: str, name: str) -> None:
        objects = self._objects.get(namespace, {})
        objects.pop(name, None)
        if not objects:
            self._objects.pop(namespace, None)

    def _notify_cluster(self, manifest: Manifest) -> None:
        """Reports a changed object of a cluster. An object without the label belongs to none."""
        cluster_id = manifest["metadata"].get("labels", {}).get(CLUSTER)
        if cluster_id is not None:
            self._notify(cluster_id)


def _namespace_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return str(metadata.get("namespace", metadata["name"]))


def _version_of(manifest: Manifest) -> int:
    # Versions were opaque by contract until Kubernetes 1.35, which orders them; they have always
    # been revisions of etcd, which are numbers that grow.
    return int(manifest["metadata"]["resourceVersion"])
