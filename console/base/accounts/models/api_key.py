"""API keys: the credentials of programs."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import models
from django.db.models import Q

from console.base.accounts.choices import ROLES
from console.base.accounts.models.organization import Organization
from console.base.accounts.models.service_account import ServiceAccount
from console.base.accounts.querysets import ApiKeyQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

NAME_CHARS_MAX = 100


class ApiKey(models.Model):
    """An API key, which has a role of its own or belongs to a service account of the organization.

    The secret's text is `fk_<key part of the id>_<secret>`; only its SHA-256 is stored. A secret of
    160 random bits cannot be guessed, so it needs no slow hash.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "key"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="api_keys"
    )
    # The key has this account's rights, as they are at the time of each request.
    service_account = models.ForeignKey(
        ServiceAccount, null=True, blank=True, on_delete=models.PROTECT, related_name="api_keys"
    )
    name = models.CharField(max_length=NAME_CHARS_MAX)
    # Empty for a key of a service account.
    role = models.CharField(max_length=16, choices=ROLES, blank=True)
    verifier = models.CharField(max_length=64)
    # The person who made the key, signed in or with another key: the key ends when they leave.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The service account whose key, or a key that it made, made this key: this key ends with it.
    created_by_account = models.ForeignKey(
        ServiceAccount, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Accurate to five minutes, because it is not written on every request.
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(service_account=None) ^ Q(role=""), name="role_or_service_account"
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="api_key_newest"),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def effective_role(self) -> str:
        """The key's role in the organization: its own, or its service account's current one."""
        return self.service_account.role if self.service_account else self.role
