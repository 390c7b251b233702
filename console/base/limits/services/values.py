"""The value of a limit that holds. In the organisation's tenancy scope."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from console.base.common.clock import now
from console.base.common.errors import LimitReached, Quota
from console.base.limits.models import LimitGrant
from console.base.limits.registry import BY_NAME

# A granted rate of requests is noticed within so long.
RATE_KEPT = timedelta(seconds=30)
# Organisations whose rate a process remembers at most.
RATES_MAX = 10_000

_known: dict[str, tuple[datetime, int]] = {}
_lock = threading.Lock()


def limit_of(name: str, *, organization_id: str, cluster_id: str = "") -> int:
    """What holds for an organisation, or for one of its clusters."""
    return limits_of([name], organization_id=organization_id, cluster_id=cluster_id)[name]


def limits_of(
    names: Sequence[str], *, organization_id: str, cluster_id: str = ""
) -> dict[str, int]:
    """The same of several limits, in one query."""
    grants: dict[str, dict[str, int]] = {name: {} for name in names}
    rows = LimitGrant.objects.filter(
        organization_id=organization_id, limit__in=names, cluster_id__in={cluster_id, ""}
    )
    for name, granted_for, value in rows.values_list("limit", "cluster_id", "value"):
        grants[name][granted_for] = value
    return {name: chosen(name, grants[name], cluster_id) for name in names}


def chosen(name: str, grants: dict[str, int], cluster_id: str) -> int:
    """A cluster's own value, else its organisation's, else the default; never more than the service
    can do. Pure but for settings.
    """
    definition = BY_NAME[name]
    for granted_for in (cluster_id, ""):
        if granted_for in grants:
            return definition.supported(grants[granted_for])
    return definition.default


def require_room(
    name: str, *, organization_id: str, used: int, adding: int = 1, cluster_id: str = ""
) -> None:
    """Raises `LimitReached` where more would be there than the limit allows."""
    limit = limit_of(name, organization_id=organization_id, cluster_id=cluster_id)
    check_room(name, limit=limit, used=used, adding=adding)


def check_room(name: str, *, limit: int, used: int, adding: int) -> None:
    """The same for a limit that is known."""
    if used + adding > limit:
        # Where nobody may have more, the text says why.
        raise LimitReached(BY_NAME[name].unsupported, quota=Quota(name, limit, used))


def requests_per_second(organization_id: str) -> int:
    """API requests of an organisation; read anew every half minute, in its tenancy scope."""
    at = now()
    kept = _known.get(organization_id)
    if kept is not None and at < kept[0]:
        return kept[1]
    value = limit_of("api_requests_per_second", organization_id=organization_id)
    with _lock:
        if len(_known) >= RATES_MAX:
            _known.clear()
        _known[organization_id] = (at + RATE_KEPT, value)
    return value
