"""Service accounts: identities of programs, which stay when the people who made them leave."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from console.base.accounts.choices import ROLES
from console.base.accounts.models.organization import Organization
from console.base.accounts.querysets import ServiceAccountQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

NAME_CHARS_MAX = 100
DESCRIPTION_CHARS_MAX = 500


class ServiceAccount(models.Model):
    """The identity of an organization's program. It has a role of its own and acts by API keys."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "sa"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.CASCADE, related_name="service_accounts"
    )
    name = models.CharField(max_length=NAME_CHARS_MAX)
    description = models.CharField(max_length=DESCRIPTION_CHARS_MAX, blank=True)
    role = models.CharField(max_length=16, choices=ROLES)
    # Whether its keys are refused.
    disabled = models.BooleanField(default=False)
    # Counts changes; the ETag is made from it.
    generation = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=now)
    # The row of a deleted account stays: keys and the audit log refer to it.
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = ServiceAccountQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["organization", "name"],
                condition=Q(deleted_at=None),
                name="one_service_account_a_name",
            ),
        )
        indexes = (
            models.Index(
                fields=["organization", "-created_at", "-id"], name="service_accounts_newest"
            ),
        )

    def __str__(self) -> str:
        return self.name
