"""Queries for entries of the audit log, within one organization and its tenancy scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from console.base.common.models import AuditEntry

# A filter's name → its column, which is the second one of an index (behind the organization).
COLUMNS = {
    "actor": "actor_id",
    "action": "action",
    "target_type": "target_type",
    "target_id": "target_id",
}


def filter_entries(
    entries: QuerySet[AuditEntry], filters: Mapping[str, Any]
) -> QuerySet[AuditEntry]:
    """Narrows entries to those that match every filter.

    `filters` may have the names of `COLUMNS`, and times: `from` ≤ `created_at` < `to`.
    """
    for name, column in COLUMNS.items():
        if filters.get(name):
            entries = entries.filter(**{column: filters[name]})
    if filters.get("from"):
        entries = entries.filter(created_at__gte=filters["from"])
    if filters.get("to"):
        entries = entries.filter(created_at__lt=filters["to"])
    return entries


def page_behind(
    *,
    organization_id: str,
    filters: Mapping[str, Any],
    behind: AuditEntry | None,
    limit: int,
) -> list[AuditEntry]:
    """Returns the next entries behind an entry, oldest first; the first ones behind None."""
    entries = filter_entries(AuditEntry.objects.filter(organization_id=organization_id), filters)
    if behind is not None:
        at, last = behind.created_at, behind.pk
        entries = entries.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=last))
    return list(entries.order_by("created_at", "id")[:limit])
