"""The ledger, by double entry: entries are only added, and the postings of each sum to zero."""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from billing.choices import Account, EntryKind
from billing.models.invoice import Invoice
from billing.querysets import PostingQuerySet
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class JournalEntry(models.Model):
    """One event of the ledger, such as an issued invoice, to which postings belong."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "je"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="journal_entries"
    )
    kind = models.CharField(max_length=16, choices=EntryKind.choices)
    # The invoice or the credit note that caused the entry; null: something else did.
    invoice = models.OneToOneField(
        Invoice, on_delete=models.PROTECT, related_name="journal_entry", null=True, blank=True
    )
    # The id of what else caused it, such as a payment. One event has one entry of a kind.
    source_id = models.CharField(max_length=ID_CHARS_MAX, null=True, blank=True)
    currency = models.CharField(max_length=3)
    # The number of postings: a trigger compares it, so that none can be added later.
    posting_count = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "journal entries"
        constraints = (
            models.UniqueConstraint(fields=["kind", "source_id"], name="one_entry_an_event"),
            models.CheckConstraint(
                condition=Q(invoice__isnull=False, source_id__isnull=True)
                | Q(invoice__isnull=True, source_id__isnull=False),
                name="entries_have_one_cause",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class Posting(models.Model):
    """An amount on an account: a debit is positive, a credit negative."""

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    entry = models.ForeignKey(JournalEntry, on_delete=models.PROTECT, related_name="postings")
    account = models.CharField(max_length=16, choices=Account.choices)
    amount_minor = models.BigIntegerField()

    objects = PostingQuerySet.as_manager()

    class Meta:
        indexes = (models.Index(fields=["organization_id", "account"], name="postings_of"),)

    def __str__(self) -> str:
        return f"{self.account} {self.amount_minor}"
