"""Documents of invoices, as they lie in the object store."""

from __future__ import annotations

from django.db import models

from billing.models.invoice import Invoice
from billing.models.numbers import KEY_CHARS_MAX
from console.common.clock import now
from console.common.ids import ID_CHARS_MAX


class InvoiceDocument(models.Model):
    """The PDF of an issued invoice: rendered and stored once."""

    invoice = models.OneToOneField(
        Invoice, on_delete=models.PROTECT, primary_key=True, related_name="document"
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    key = models.CharField(max_length=KEY_CHARS_MAX)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.key
