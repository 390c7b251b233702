"""The driver's part of the deletion guard, which is a set of admission policies.

The policies are installed with the service (`provisioning/deliverables/kubernetes/base/guard/`).
They refuse to delete a namespace with live data, and any namespace while the ConfigMap
`freshet-health` says `held`. They let a namespace pass that has the annotation
`freshet.dev/break-glass`, which only the group `freshet:break-glass` may set.
"""

from __future__ import annotations

from provisioning.cell.drivers.kubernetes.api import Api
from provisioning.cell.drivers.kubernetes.manifests import MANAGED_BY, MANAGER, Manifest
from provisioning.cell.drivers.kubernetes.options import KubernetesOptions

HEALTH = "freshet-health"
BREAK_GLASS = "freshet.dev/break-glass"
# The group that may set that annotation. The keeper acts as its member for this one call only.
BREAK_GLASS_GROUP = "freshet:break-glass"


def health_config_map(options: KubernetesOptions, *, held: bool, reason: str) -> Manifest:
    """The ConfigMap `freshet-health`, which the policies read."""
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
    """Permits the deletion of one namespace while deletions are held. Raises `ApiError`, `Lost`."""
    change = {"metadata": {"annotations": {BREAK_GLASS: audit_id}}}
    groups = (BREAK_GLASS_GROUP,)
    api.impersonating(options.identity, groups).merge("Namespace", namespace, "", change)
