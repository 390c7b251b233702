"""The organizations that a person belongs to."""

from __future__ import annotations

from console.base.accounts.models import Membership, User
from console.base.common.tenancy import system_scope


def organizations_of(user: User) -> list[Membership]:
    """Returns a user's memberships with their organizations, in the order in which they joined."""
    with system_scope():
        return list(
            Membership.objects.filter(user=user)
            .select_related("organization")
            .order_by("created_at", "id")
        )
