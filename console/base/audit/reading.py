"""Entries of the audit log. Always within an organisation, and its tenancy scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from console.base.common.models import AuditEntry

# Filter → the column that an index begins with, behind the organisation.
COLUMNS = {
    "actor": "actor_id",
    "action": "action",
    "target_type": "target_type",
    "target_id": "target_id",
}


def filtered(entries: QuerySet[AuditEntry], wanted: Mapping[str, Any]) -> QuerySet[AuditEntry]:
    """Those that match every filter: of `COLUMNS`, and `from` ≤ `created_at` < `to`."""
    for name, column in COLUMNS.items():
        if wanted.get(name):
            entries = entries.filter(**{column: wanted[name]})
    if wanted.get("from"):
        entries = entries.filter(created_at__gte=wanted["from"])
    if wanted.get("to"):
        entries = entries.filter(created_at__lt=wanted["to"])
    return entries


def page_behind(
    *,
    organization_id: str,
    wanted: Mapping[str, Any],
    behind: AuditEntry | None,
    limit: int,
) -> list[AuditEntry]:
    """The next entries behind one, oldest first; from the beginning behind None."""
    entries = filtered(AuditEntry.objects.filter(organization_id=organization_id), wanted)
    if behind is not None:
        at, last = behind.created_at, behind.pk
        entries = entries.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=last))
    return list(entries.order_by("created_at", "id")[:limit])
