"""The values of limits that apply. The queries run in the organization's tenancy scope."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from console.base.common.clock import now
from console.base.common.errors import LimitReached, Quota
from console.base.limits.models import LimitGrant
from console.base.limits.registry import BY_NAME

# The limits that most requests ask for. A process remembers them, and so may overlook a grant, for
# so long.
FREQUENT = ("api_requests_per_second", "waiting_requests", "watches", "downloads")
KEPT = timedelta(seconds=30)
# The most organizations whose limits a process remembers.
ORGANIZATIONS_MAX = 10_000

# Organization id → when its limits are to be read again, and the limits.
_remembered: dict[str, tuple[datetime, dict[str, int]]] = {}
_lock = threading.Lock()


def limit_of(name: str, *, organization_id: str, cluster_id: str = "") -> int:
    """Returns the value of a limit for an organization, or for one of its clusters."""
    return limits_of([name], organization_id=organization_id, cluster_id=cluster_id)[name]


def limits_of(
    names: Sequence[str], *, organization_id: str, cluster_id: str = ""
) -> dict[str, int]:
    """Returns the values of several limits by name, with one query."""
    grants: dict[str, dict[str, int]] = {name: {} for name in names}
    rows = LimitGrant.objects.filter(
        organization_id=organization_id, limit__in=names, cluster_id__in={cluster_id, ""}
    )
    for name, granted_for, value in rows.values_list("limit", "cluster_id", "value"):
        grants[name][granted_for] = value
    return {name: choose_value(name, grants[name], cluster_id) for name in names}


def choose_value(name: str, grants: dict[str, int], cluster_id: str) -> int:
    """Returns the cluster's granted value, else its organization's, else the default.

    `grants` has values by cluster id, with the organization's under the empty text. The result is
    at most what the service supports. Pure but for the settings.
    """
    definition = BY_NAME[name]
    for granted_for in (cluster_id, ""):
        if granted_for in grants:
            return definition.supported(grants[granted_for])
    return definition.default


def require_room(
    name: str, *, organization_id: str, used: int, adding: int = 1, cluster_id: str = ""
) -> None:
    """Raises `LimitReached` if `used + adding` would exceed the limit that applies."""
    limit = limit_of(name, organization_id=organization_id, cluster_id=cluster_id)
    check_room(name, limit=limit, used=used, adding=adding)


def check_room(name: str, *, limit: int, used: int, adding: int) -> None:
    """Raises `LimitReached` if `used + adding` would exceed `limit`, the known value."""
    if used + adding > limit:
        definition, total = BY_NAME[name], used + adding
        # An empty text stands for the error's own title.
        detail = definition.unsupported if total > definition.supported(total) else ""
        raise LimitReached(detail, quota=Quota(name, limit, used))


def frequent_limit(name: str, organization_id: str) -> int:
    """Returns one of an organization's limits in `FREQUENT`, remembered for `KEPT`.

    The query runs in the organization's tenancy scope.
    """
    at = now()
    remembered = _remembered.get(organization_id)
    if remembered is None or at >= remembered[0]:
        remembered = at + KEPT, limits_of(FREQUENT, organization_id=organization_id)
        with _lock:
            if len(_remembered) >= ORGANIZATIONS_MAX:
                _remembered.clear()
            _remembered[organization_id] = remembered
    return remembered[1][name]
