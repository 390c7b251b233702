"""PDFs of invoices in the object store, and the mails that announce invoices."""

from __future__ import annotations

from django.db import models

from billing.models.invoice import Invoice
from billing.models.numbers import KEY_CHARS_MAX
from billing.querysets import InvoiceMailQuerySet
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX


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


class InvoiceMail(models.Model):
    """The mail that announces an issued invoice: noted in the issuing transaction, sent once."""

    invoice = models.OneToOneField(
        Invoice, on_delete=models.PROTECT, primary_key=True, related_name="mail"
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    sent_at = models.DateTimeField(null=True, blank=True)
    # When the mail server last refused it, or could not be reached.
    failed_at = models.DateTimeField(null=True, blank=True)
    # The number of addresses; 0 where no member has the permission `billing`.
    recipients = models.PositiveSmallIntegerField(default=0)

    objects = InvoiceMailQuerySet.as_manager()

    class Meta:
        indexes = (
            models.Index(
                fields=["invoice"],
                condition=models.Q(sent_at__isnull=True),
                name="invoice_mails_due",
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)
