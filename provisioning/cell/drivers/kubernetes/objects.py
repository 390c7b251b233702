"""The objects of clusters at the API server: written where they are not as they shall be.

Calls block, and raise `ApiError` and `Lost`. Each may be repeated.
"""

from __future__ import annotations

import http.client
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from provisioning.cell.drivers.kubernetes.api import Api, ApiError
from provisioning.cell.drivers.kubernetes.compare import differing, holds
from provisioning.cell.drivers.kubernetes.manifests import Manifest, reserved
from provisioning.cell.drivers.kubernetes.observe import is_ending

LOGGER = logging.getLogger(__name__)

CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"
# Of all kinds that a cluster has.
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
Found = Mapping[Key, Manifest]


def key_of(manifest: Manifest) -> Key:
    """What an object is found by."""
    named = manifest["metadata"]
    return manifest["kind"], str(named.get("namespace", "")), str(named["name"])


def space_of(key: Key) -> str:
    """The cluster's namespace that an object is in, or that it is, or whose volume it is."""
    return key[1] or key[2]


class Objects:
    """Writes what differs, and nothing else."""

    def __init__(
        self,
        api: Api,
        wrote: Callable[[Manifest], None],
        pods_in: Callable[[str], Sequence[Manifest]],
    ) -> None:
        """`wrote` is told each object that was written; `pods_in` gives those of a namespace."""
        self._api = api
        self._wrote = wrote
        self._pods_in = pods_in

    def list_all(self, selector: str) -> dict[str, dict[Key, Manifest]]:
        """All objects with these labels, by the namespace of their cluster."""
        found: dict[str, dict[Key, Manifest]] = {}
        for kind in KINDS:
            for item in self._api.list(kind, selector).items:
                key = key_of(item)
                item["metadata"].pop("managedFields", None)
                found.setdefault(space_of(key), {})[key] = item
        return found

    def settle(
        self, manifests: Iterable[Manifest], found: Found, level: int = logging.DEBUG
    ) -> int:
        """Has these objects be there; gives the number of writes.

        `found` is what there was a moment ago: what seems to differ is read again before it is
        written. What is written is logged at a level.
        """
        writes = 0
        claim: Manifest | None = None
        for each in manifests:
            manifest = each
            if each["kind"] == VOLUME and claim is not None:
                manifest = reserved(each, claim["metadata"]["uid"])
            there, written = self._settle_one(manifest, found.get(key_of(manifest)), level)
            writes += written
            if each["kind"] == CLAIM:
                claim = there
            if each["kind"] in {CLAIM, VOLUME} and is_ending(there):
                writes += self._let_go(there, claim)
        return writes

    def _settle_one(
        self, manifest: Manifest, there: Manifest | None, level: int
    ) -> tuple[Manifest, int]:
        kind, space, name = key_of(manifest)
        if there is not None and not holds(manifest, there):
            there = self._api.get(kind, name, space)
        if there is not None and holds(manifest, there):
            return there, 0
        where = "it is missing" if there is None else ", ".join(differing(manifest, there))
        LOGGER.log(level, "%s %s is written: %s", kind, f"{space}/{name}".strip("/"), where)
        put = self._api.apply(manifest)
        self._wrote(put)
        return put, 1

    def _let_go(self, ending: Manifest, claim: Manifest | None) -> int:
        """Of a claim or a volume that somebody has deleted: neither goes while a pod uses it, and
        both work as before; without pods they go, and come again."""
        kind, space, name = key_of(ending)
        home = space or name
        if self._pods_in(home):
            LOGGER.warning("%s %s was deleted: it comes again when no pod uses it", kind, name)
            return 0
        if kind == VOLUME and claim is not None and not is_ending(claim):
            self._api.delete(CLAIM, claim["metadata"]["name"], home)
        message = f"{kind} {name} is being terminated"
        raise ApiError(http.client.CONFLICT, "Conflict", message)
