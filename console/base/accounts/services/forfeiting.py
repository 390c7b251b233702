"""Has the clusters of an organization deleted that did not pay for them, and restored once it did.

The organization stays, and its people sign in as before: whoever pays within the usual days has the
clusters back.
"""

from __future__ import annotations

from django.dispatch import Signal

from console.base.accounts.models import Organization
from console.base.accounts.signals import (
    organization_clusters_forfeited,
    organization_clusters_redeemed,
)
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.tenancy import organization_scope


def forfeit_clusters(*, organization_id: str, reason: str) -> None:
    """Deletes every cluster of an organization, also protected ones. Billing decides it."""
    _announce(
        organization_clusters_forfeited, "organization.forfeit_clusters", organization_id, reason
    )


def redeem_clusters(*, organization_id: str, reason: str) -> None:
    """Restores the clusters that `forfeit_clusters` deleted, but for those whose data is gone."""
    _announce(
        organization_clusters_redeemed, "organization.redeem_clusters", organization_id, reason
    )


def _announce(signal: Signal, action: str, organization_id: str, reason: str) -> None:
    with organization_scope(organization_id):
        # Creating a cluster locks this row too, so a cluster that is being created now is either
        # there before us, or comes to an organization that has been put to sleep.
        Organization.objects.select_for_update(no_key=True).get(pk=organization_id)
        record_audit(
            actor=system_actor(organization_id),
            action=action,
            target_type="organization",
            target_id=organization_id,
            detail={"reason": reason},
        )
        signal.send(sender=Organization, organization_id=organization_id)
