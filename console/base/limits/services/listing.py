"""All limits of an organisation, with what is used of each."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.common.errors import FieldError, ValidationFailed
from console.base.limits.choices import LimitScope
from console.base.limits.models import LimitGrant
from console.base.limits.registry import LIMITS, Limit
from console.base.limits.services.values import chosen
from console.base.limits.usage import has_cluster, used


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit, the value that holds, and how much of it is used; None: not known."""

    definition: Limit
    limit: int
    used: int | None

    @property
    def name(self) -> str:
        """The limit's name."""
        return self.definition.name


def list_limits(*, organization_id: str, cluster_id: str = "") -> list[LimitUse]:
    """Every limit by name; those of clusters for one of them, or as all of them have it.

    Raises `ValidationFailed` for a cluster that the organisation does not have.
    """
    if cluster_id and not has_cluster(organization_id, cluster_id):
        detail = "The organisation has no such cluster."
        raise ValidationFailed(detail, errors=[FieldError("?cluster_id", "not_found", detail)])
    grants: dict[str, dict[str, int]] = {}
    rows = LimitGrant.objects.filter(
        organization_id=organization_id, cluster_id__in={cluster_id, ""}
    )
    for name, granted_for, value in rows.values_list("limit", "cluster_id", "value"):
        grants.setdefault(name, {})[granted_for] = value
    return [
        LimitUse(
            definition=limit,
            limit=chosen(limit.name, grants.get(limit.name, {}), cluster_id),
            used=_used(limit, organization_id, cluster_id),
        )
        for limit in sorted(LIMITS, key=lambda each: each.name)
    ]


def _used(limit: Limit, organization_id: str, cluster_id: str) -> int | None:
    if limit.scope is LimitScope.ADDRESS:
        return None
    if limit.scope is LimitScope.CLUSTER and not cluster_id:
        return None
    return used(limit.name, organization_id, cluster_id)
