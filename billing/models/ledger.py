"""The ledger: double entries that are only ever added, and each of which sums to zero."""

from __future__ import annotations

from functools import partial

from django.db import models

from billing.choices import Account, EntryKind
from billing.models.invoice import Invoice
from billing.querysets import PostingQuerySet
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class JournalEntry(models.Model):
    """One event, with the postings that belong to it."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "je"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="journal_entries"
    )
    kind = models.CharField(max_length=16, choices=EntryKind.choices)
    # The invoice, or the credit note, that it follows from.
    invoice = models.OneToOneField(Invoice, on_delete=models.PROTECT, related_name="journal_entry")
    currency = models.CharField(max_length=3)
    # How many there are: a posting cannot be added later.
    posting_count = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "journal entries"

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Posting(models.Model):
    """An amount on an account: a debit above zero, a credit below."""

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    entry = models.ForeignKey(JournalEntry, on_delete=models.PROTECT, related_name="postings")
    account = models.CharField(max_length=16, choices=Account.choices)
    amount_minor = models.BigIntegerField()

    objects = PostingQuerySet.as_manager()

    class Meta:
        indexes = (models.Index(fields=["organization_id", "account"], name="postings_of"),)

    def __str__(self) -> str:
        return f"{self.account} {self.amount_minor}"
