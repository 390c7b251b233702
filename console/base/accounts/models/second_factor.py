"""Second factors: time-based codes, and recovery codes for people who lost the device."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from console.base.common.clock import now


class SecondFactor(models.Model):
    """A user's secret for time-based codes (RFC 6238). It takes effect once it is confirmed."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="second_factor",
    )
    # Sealed with our secret key and the user's id (`console.base.common.sealing`).
    sealed_secret = models.BinaryField()
    # The time step of the last accepted code: no code of this step or an earlier one is accepted.
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    confirmed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """A code that replaces the second factor once. Only a keyed digest of it is stored."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes"
    )
    verifier = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["user", "verifier"], name="recovery_code_once"),
        )

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"
