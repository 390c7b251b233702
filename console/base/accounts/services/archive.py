"""What an organisation's archive holds of its people: their accounts are no organisation's."""

from __future__ import annotations

from collections.abc import Iterator

from console.base.accounts.models import Membership
from console.base.common.exports import Row


def archived_people(organization_id: str) -> Iterator[Row]:
    """Its members, as it knows them."""
    members = Membership.objects.for_organization(organization_id).select_related("user")
    for membership in members.order_by("created_at", "id"):
        yield {
            "user_id": membership.user_id,
            "email": membership.user.email,
            "name": membership.user.name,
            "role": membership.role,
        }
