"""Writes the objects of clusters at the API server where they differ from their manifests.

All calls block, raise `ApiError` and `Lost`, and may be repeated.
"""

from __future__ import annotations

import http.client
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from provisioning.cell.drivers.kubernetes.api import Api, ApiError
from provisioning.cell.drivers.kubernetes.compare import differing_paths, has_fields
from provisioning.cell.drivers.kubernetes.manifests import Manifest, reserved_volume
from provisioning.cell.drivers.kubernetes.observe import is_ending

LOGGER = logging.getLogger(__name__)

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"
# All kinds of objects that a cluster has.
KINDS = (
    "Namespace",
    CLAIM,
    VOLUME,
    "ResourceQuota",
    "ServiceAccount",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Secret",
    "Deployment",
)

# Kind, namespace and name.
Key = tuple[str, str, str]
ObjectsByKey = Mapping[Key, Manifest]


def key_of(manifest: Manifest) -> Key:
    """The key by which an object is found: its kind, namespace and name."""
    metadata = manifest["metadata"]
    return manifest["kind"], str(metadata.get("namespace", "")), str(metadata["name"])


def space_of(key: Key) -> str:
    """The namespace of the cluster that an object belongs to.

    A Namespace is its own, and a PersistentVolume has the name of its cluster's namespace.
    """
    return key[1] or key[2]


class Objects:
    """Writes the objects that differ from their manifests, and no others."""

    def __init__(
        self,
        api: Api,
        wrote: Callable[[Manifest], None],
        pods_in: Callable[[str], Sequence[Manifest]],
    ) -> None:
        """Calls `wrote` with each written object. `pods_in` returns the pods of a namespace."""
        self._api = api
        self._wrote = wrote
        self._pods_in = pods_in

    def list_all(self, selector: str) -> dict[str, dict[Key, Manifest]]:
        """Lists all objects with these labels, by the namespace of their cluster."""
        objects: dict[str, dict[Key, Manifest]] = {}
        for kind in KINDS:
            for item in self._api.list(kind, selector).items:
                key = key_of(item)
                item["metadata"].pop("managedFields", None)
                objects.setdefault(space_of(key), {})[key] = item
        return objects

    def write_differences(
        self, manifests: Iterable[Manifest], existing: ObjectsByKey, level: int = logging.DEBUG
    ) -> int:
        """Writes those of these objects that are missing or differ. Returns the number of writes.

        `existing` holds the objects as they were a moment ago: one that seems to differ is read
        again before it is written. Each write is logged at `level`.

        Raises `ApiError` (409) while a claim or a volume that somebody deleted cannot be created
        again yet.
        """
        writes = 0
        claim: Manifest | None = None
        for template in manifests:
            manifest = template
            if template["kind"] == VOLUME and claim is not None:
                manifest = reserved_volume(template, claim["metadata"]["uid"])
            there, written = self._write_difference(manifest, existing.get(key_of(manifest)), level)
            writes += written
            if template["kind"] == CLAIM:
                claim = there
            if template["kind"] in {CLAIM, VOLUME} and is_ending(there):
                writes += self._wait_until_unused(there, claim)
        return writes

    def _write_difference(
        self, manifest: Manifest, there: Manifest | None, level: int
    ) -> tuple[Manifest, int]:
        kind, space, name = key_of(manifest)
        if there is not None and not has_fields(manifest, there):
            there = self._api.get(kind, name, space)
        if there is not None and has_fields(manifest, there):
            return there, 0
        where = "it is missing" if there is None else ", ".join(differing_paths(manifest, there))
        LOGGER.log(level, "%s %s is written: %s", kind, f"{space}/{name}".strip("/"), where)
        put = self._api.apply(manifest)
        self._wrote(put)
        return put, 1

    def _wait_until_unused(self, ending: Manifest, claim: Manifest | None) -> int:
        """Handles a claim or a volume that somebody has deleted.

        Kubernetes keeps it, and it works as before, as long as a pod uses it: then nothing is done
        and 0 is returned. Without pods it is let go, so that a later call creates it again.

        Raises `ApiError` (409) until then.
        """
        kind, space, name = key_of(ending)
        home = space or name
        if self._pods_in(home):
            LOGGER.warning("%s %s was deleted: it is made again once no pod uses it", kind, name)
            return 0
        if kind == VOLUME and claim is not None and not is_ending(claim):
            self._api.delete(CLAIM, claim["metadata"]["name"], home)
        message = f"{kind} {name} is being terminated"
        raise ApiError(http.client.CONFLICT, "Conflict", message)
