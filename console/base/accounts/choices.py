"""Values that columns of accounts may have."""

from __future__ import annotations

from django.db import models

from console.base.common.actor import Role


class AccountStatus(models.TextChoices):
    """Whether an organization's clusters serve. Billing writes it, provisioning reads it."""

    ACTIVE = "active", "Active"
    SUSPENDED = "suspended", "Suspended"


class TrafficLimitKind(models.TextChoices):
    """What the clusters of an organization do with the traffic of clients; the strictest first.

    Groups, offsets and administration go on in each case.
    """

    REFUSE = "refuse", "Refuse produce and fetch"
    REFUSE_PRODUCE = "refuse_produce", "Refuse produce"
    THROTTLE = "throttle", "Slow produce and fetch down"


class TrafficLimitSource(models.TextChoices):
    """Why an organization's traffic is limited. Of equal limits the first one's reason is shown."""

    UNPAID = "unpaid", "An invoice is unpaid"
    ALLOWANCE = "allowance", "The free allowance is used up"
    PAYER = "payer", "The card has to prove that it pays"
    BUDGET = "budget", "A budget is used up"


class MailPurpose(models.TextChoices):
    """What a mail is for that is requested for an address, whether or not it has an account."""

    RESET = "reset", "Set a new password"
    SIGN_IN = "sign_in", "Sign in with a new browser"
    SIGN_UP = "sign_up", "Somebody signed up with the address again"


class PrincipalType(models.TextChoices):
    """Who may have a role in a project."""

    USER = "user", "User"
    SERVICE_ACCOUNT = "service_account", "Service account"


class InvitationState(models.TextChoices):
    """The state of an invitation."""

    PENDING = "pending", "Pending"
    ACCEPTED = "accepted", "Accepted"
    REVOKED = "revoked", "Revoked"
    EXPIRED = "expired", "Expired"


ROLES = [(role.value, role.value.capitalize()) for role in Role]
# A role in a project has to grant more than belonging to the organization does.
PROJECT_ROLES = [role for role in ROLES if role[0] != Role.MEMBER]
