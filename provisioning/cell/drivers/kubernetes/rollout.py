"""Decides which running brokers get a new pod, and when: pure.

Another image or other resources end a broker's pod and start a new one. That is done to one broker
of a cluster at a time, and to few of a cell, so that an image that does not serve only reaches
those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from provisioning.cell.drivers.kubernetes.compare import has_fields
from provisioning.cell.drivers.kubernetes.manifests import Manifest
from provisioning.cell.drivers.kubernetes.objects import ObjectsByKey, key_of

DEPLOYMENT = "Deployment"


def is_serving(deployment: Manifest) -> bool:
    """Whether the broker's pod is ready and is the one that its Deployment describes."""
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    counts = {status.get(name, 0) for name in ("updatedReplicas", "availableReplicas")}
    return bool(seen) and counts == {replicas}


def count_unfinished(shall: Iterable[Manifest], existing: ObjectsByKey) -> int:
    """How many running brokers already have their new pod and do not serve yet."""
    pairs = _running_pairs(shall, existing)
    return sum(
        not _gets_new_pod(desired, there) and not is_serving(there) for desired, there in pairs
    )


@dataclass(frozen=True)
class PermittedWrites:
    """The manifests that may be written `now`.

    `rolling`: how many serving brokers get a new pod by that; `waiting`: how many still wait.
    """

    now: list[Manifest]
    rolling: int
    waiting: int


def permit_writes(
    shall: Sequence[Manifest], existing: ObjectsByKey, budget: int
) -> PermittedWrites:
    """Selects the manifests of a cluster (`shall`) that may be written now.

    `budget` is how many serving brokers of the cell may still get a new pod. Of a cluster one
    serving broker gets one, and only while all its brokers serve. A broker that does not serve may
    always get one, because nobody is connected to it.
    """
    running = _running_pairs(shall, existing)
    rolls = [
        desired for desired, there in running if _gets_new_pod(desired, there) and is_serving(there)
    ]
    allowed = budget > 0 and all(is_serving(there) for _, there in running)
    waiting = rolls[1:] if allowed else rolls
    now = [manifest for manifest in shall if manifest not in waiting]
    return PermittedWrites(now, len(rolls) - len(waiting), len(waiting))


def _running_pairs(
    shall: Iterable[Manifest], existing: ObjectsByKey
) -> list[tuple[Manifest, Manifest]]:
    """Pairs of desired and existing Deployments of the brokers that have a pod."""
    return [
        (desired, there)
        for desired in shall
        if desired["kind"] == DEPLOYMENT
        and (there := existing.get(key_of(desired))) is not None
        and there["spec"]["replicas"]
    ]


def _gets_new_pod(desired: Manifest, there: Manifest) -> bool:
    return not has_fields(desired["spec"]["template"], there["spec"]["template"])
