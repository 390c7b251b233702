"""Second factors: codes by time, and codes for who lost the device."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from console.base.common.clock import now


class SecondFactor(models.Model):
    """A user's secret for time-based codes (RFC 6238). It counts from its confirmation on."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="second_factor",
    )
    # Sealed with our secret key and the user's id (`console.base.common.sealing`).
    sealed_secret = models.BinaryField()
    # The time step of the last code that was taken: neither it nor an earlier one is taken again.
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    confirmed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class RecoveryCode(models.Model):
    """A code that stands in for the second factor once. Only a keyed digest of it is kept."""

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
