"""The deletion guard's part of the API server: what it holds, and the one way past it.

The policies themselves are installed with the service
(`provisioning/deliverables/kubernetes/base/guard/`): no namespace with live data is deleted, and
none at all while `freshet-health` says `held`, but for one with
an annotation that only the group `freshet:break-glass` may set.
"""

from __future__ import annotations

from provisioning.cell.drivers.kubernetes.api import Api
from provisioning.cell.drivers.kubernetes.manifests import MANAGED_BY, MANAGER, Manifest
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions

HEALTH = "freshet-health"
BREAK_GLASS = "freshet.dev/break-glass"
# Who may set that annotation. The keeper is none of them but for this one call.
BREAK_GLASS_GROUP = "freshet:break-glass"


def health(options: KubernetesOptions, *, held: bool, reason: str) -> Manifest:
    """What the policies look at."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": HEALTH,
            "namespace": options.system_namespace,
            "labels": {MANAGED_BY: MANAGER},
        },
        "data": {"deletions": "held" if held else "allowed", "reason": reason},
    }


def break_glass(api: Api, options: KubernetesOptions, namespace: str, audit_id: str) -> None:
    """Lets one namespace be deleted although deletions are held. Raises `ApiError`, `Lost`."""
    change = {"metadata": {"annotations": {BREAK_GLASS: audit_id}}}
    groups = (BREAK_GLASS_GROUP,)
    api.impersonating(options.identity, groups).merge("Namespace", namespace, "", change)
