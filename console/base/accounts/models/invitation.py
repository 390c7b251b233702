"""Invitations into an organization."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from console.base.accounts.choices import ROLES, InvitationState
from console.base.accounts.models.organization import Organization
from console.base.accounts.models.service_account import ServiceAccount
from console.base.accounts.querysets import InvitationQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class Invitation(models.Model):
    """An address that may join with a role. Its mail has a token, of which a digest is stored."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "ivt"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="invitations"
    )
    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=16, choices=ROLES)
    # An expired invitation stays `pending` here until another one of the address replaces it.
    state = models.CharField(
        max_length=16, choices=InvitationState.choices, default=InvitationState.PENDING.value
    )
    # Changes whenever the mail is sent again, which makes the tokens of earlier mails invalid.
    nonce = models.CharField(max_length=32)
    token_digest = models.CharField(max_length=64, unique=True)
    # The person who invites, or who made the key that did.
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The service account whose key, or a key that it made, invites: the invitation ends with it.
    invited_by_account = models.ForeignKey(
        ServiceAccount, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # A list of `{project_id, role}`: roles in projects that the person gets on accepting, for those
    # projects that still exist then.
    project_roles = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()

    objects = InvitationQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "email"],
                condition=Q(state=InvitationState.PENDING.value),
                name="one_pending_invitation",
            ),
            models.CheckConstraint(condition=Q(email=Lower("email")), name="invited_in_lower_case"),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="invitations_newest"),
        )

    def __str__(self) -> str:
        return f"{self.email} to {self.organization_id}"

    @property
    def shown_state(self) -> str:
        """The state to show: `expired` for a pending invitation whose time is over."""
        if self.state == InvitationState.PENDING and self.expires_at <= now():
            return InvitationState.EXPIRED
        return self.state
