"""The people in an organization's archive. Users belong to no organization, so it has no table."""

from __future__ import annotations

from collections.abc import Iterator

from console.base.accounts.models import Membership
from console.base.common.exports import Row


def archived_people(organization_id: str) -> Iterator[Row]:
    """Yields one row for each member, in the order in which they joined."""
    members = Membership.objects.for_organization(organization_id).select_related("user")
    for membership in members.order_by("created_at", "id"):
        yield {
            "user_id": membership.user_id,
            "email": membership.user.email,
            "name": membership.user.name,
            "role": membership.role,
        }
