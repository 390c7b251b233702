"""Values that columns of accounts may have."""

from __future__ import annotations

from django.db import models

from console.common.actor import Role


class Standing(models.TextChoices):
    """Whether an organisation's clusters serve. Billing writes it, provisioning reads it."""

    ACTIVE = "active", "Active"
    SUSPENDED = "suspended", "Suspended"


ROLES = [(role.value, role.value.capitalize()) for role in Role]
