"""Which running brokers get a new pod, and when: pure.

Another image, or other resources, ends a pod and begins one. That is done to one broker of a
cluster at a time, and to few of a cell: an image that does not serve stops at those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from provisioning.cell.drivers.kubernetes.compare import holds
from provisioning.cell.drivers.kubernetes.manifests import Manifest
from provisioning.cell.drivers.kubernetes.objects import Found, key_of

DEPLOYMENT = "Deployment"


def is_serving(deployment: Manifest) -> bool:
    """Whether the pod of a running broker is the one that its Deployment describes, and ready."""
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    counts = {status.get(name, 0) for name in ("updatedReplicas", "availableReplicas")}
    return bool(seen) and counts == {replicas}


def unfinished(shall: Iterable[Manifest], found: Found) -> int:
    """How many running brokers have what they shall have, and do not serve with it."""
    pairs = _running(shall, found)
    return sum(not _rolls(wanted, there) and not is_serving(there) for wanted, there in pairs)


@dataclass(frozen=True)
class Permitted:
    """What may be written `now`; how many brokers that serve get another pod by it, and how many
    wait for theirs."""

    now: list[Manifest]
    rolling: int
    waiting: int


def permitted(shall: Sequence[Manifest], found: Found, budget: int) -> Permitted:
    """What may be written while so many brokers that serve may get another pod.

    One that does not serve loses nothing by it: that is always permitted. Of those that serve one
    is, where all others of the cluster do.
    """
    running = _running(shall, found)
    rolls = [wanted for wanted, there in running if _rolls(wanted, there) and is_serving(there)]
    allowed = budget > 0 and all(is_serving(there) for _, there in running)
    waiting = rolls[1:] if allowed else rolls
    now = [each for each in shall if each not in waiting]
    return Permitted(now, len(rolls) - len(waiting), len(waiting))


def _running(shall: Iterable[Manifest], found: Found) -> list[tuple[Manifest, Manifest]]:
    """Deployments as they shall be and are, of brokers that have a pod."""
    return [
        (wanted, there)
        for wanted in shall
        if wanted["kind"] == DEPLOYMENT
        and (there := found.get(key_of(wanted))) is not None
        and there["spec"]["replicas"]
    ]


def _rolls(wanted: Manifest, there: Manifest) -> bool:
    return not holds(wanted["spec"]["template"], there["spec"]["template"])
