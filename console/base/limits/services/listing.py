"""All limits of an organization, with how much of each is used."""

from __future__ import annotations

from dataclasses import dataclass

from console.base.common.errors import FieldError, ValidationFailed
from console.base.limits.choices import LimitScope
from console.base.limits.models import LimitGrant
from console.base.limits.registry import LIMITS, Limit
from console.base.limits.services.values import choose_value
from console.base.limits.usage import has_cluster, read_usage


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit, the value that applies, and how much of it is used (None if that is not known)."""

    definition: Limit
    limit: int
    used: int | None

    @property
    def name(self) -> str:
        """The limit's name."""
        return self.definition.name


def list_limits(*, organization_id: str, cluster_id: str = "") -> list[LimitUse]:
    """Returns every limit, sorted by name, with its value and use.

    Limits of clusters are those of `cluster_id`, or without it the values that apply to clusters
    without a grant of their own. Raises `ValidationFailed` for a cluster that the organization does
    not have.
    """
    if cluster_id and not has_cluster(organization_id, cluster_id):
        detail = "The organization has no such cluster."
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
            limit=choose_value(limit.name, grants.get(limit.name, {}), cluster_id),
            used=_used_of(limit, organization_id, cluster_id),
        )
        for limit in sorted(LIMITS, key=lambda limit: limit.name)
    ]


def _used_of(limit: Limit, organization_id: str, cluster_id: str) -> int | None:
    """Returns how much of a limit is used; None if it is not known, or not of this scope."""
    if limit.scope is LimitScope.ADDRESS:
        return None
    if limit.scope is LimitScope.CLUSTER and not cluster_id:
        return None
    return read_usage(limit.name, organization_id, cluster_id)
