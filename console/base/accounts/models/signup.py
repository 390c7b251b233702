"""Events of network addresses, counted for limits per address."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now


class AddressEvent(models.Model):
    """A sign-up, a failed sign-in or the like from an address. Deleted after two hours."""

    kind = models.CharField(max_length=16)
    address = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=now)

    class Meta:
        indexes = (models.Index(fields=["kind", "address", "created_at"], name="address_events"),)

    def __str__(self) -> str:
        return f"{self.kind} from {self.address}"
