"""Organizations and who belongs to them."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import models

from console.base.accounts.choices import ROLES, AccountStatus, TrafficLimitKind
from console.base.accounts.querysets import MembershipQuerySet, OrganizationQuerySet
from console.base.accounts.traffic import LimitInForce, limit_in_force
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

NAME_CHARS_MAX = 100
REASON_CHARS_MAX = 500


class Organization(models.Model):
    """A tenant: owns clusters and API keys, gets the invoices."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "org"), editable=False
    )
    name = models.CharField(max_length=NAME_CHARS_MAX)
    account_status = models.CharField(
        max_length=16,
        choices=AccountStatus.choices,
        default=AccountStatus.ACTIVE.value,
        db_column="standing",
    )
    # The traffic limit that holds, of all that are set (`TrafficLimit`); without a reason there is
    # none. Clients are shown the reason. Its column keeps the name that it has.
    traffic_kind = models.CharField(
        max_length=16, choices=TrafficLimitKind.choices, null=True, blank=True
    )
    traffic_reason = models.CharField(
        max_length=REASON_CHARS_MAX, null=True, blank=True, db_column="produce_suspended_reason"
    )
    traffic_bytes_per_s = models.BigIntegerField(null=True, blank=True)
    # Networks in CIDR notation that keys and people may come from; an empty list allows all.
    allowed_addresses = models.JSONField(default=list, blank=True)
    # Whether sessions without a second factor are refused.
    two_factor_required = models.BooleanField(default=False)
    # When its owner closed it. From then on it is only read.
    closed_at = models.DateTimeField(null=True, blank=True)
    # When the first of its owners proved to own an address.
    verified_at = models.DateTimeField(null=True, blank=True)
    # Counts changes that people made to the organization; the ETag is made from it.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)

    objects = OrganizationQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    @property
    def traffic_limit(self) -> LimitInForce | None:
        """What its clusters do with the traffic of clients; None where nothing limits it."""
        return limit_in_force(self.traffic_kind, self.traffic_reason, self.traffic_bytes_per_s)

    def may_be_reached(self, *, local: bool) -> bool:
        """Returns whether its clusters get public endpoints: if active, and verified or `local`."""
        return self.account_status == AccountStatus.ACTIVE and (
            local or self.verified_at is not None
        )


class Membership(models.Model):
    """A user's role in an organization."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "mem"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=ROLES)
    created_at = models.DateTimeField(default=now)
    # When the user last used the console in this organization; accurate to five minutes.
    last_seen_at = models.DateTimeField(null=True, blank=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["organization", "user"], name="one_role_each"),
        )
        indexes = (
            models.Index(fields=["organization", "created_at", "id"], name="members_oldest"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} in {self.organization_id}"
