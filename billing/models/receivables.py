"""What customers owe, and what pays it: receivables, payments, credits, refunds and disputes.

`billing/receivables/` is the only writer. Triggers of `migrations/0009_guards_of_money.py` compare
each open and each unapplied amount with the settlements, at the commit.
"""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import F, Q

from billing.choices import DisputeState, PaymentMethod, ReceivableState, SettlementKind
from billing.models.invoice import REASON_CHARS_MAX, Invoice
from billing.models.ledger import JournalEntry
from billing.querysets import OwnedQuerySet, ReceivableQuerySet
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

# A creditor reference of ISO 11649: `RF`, two check digits, and 21 characters at most.
REFERENCE_CHARS_MAX = 25
EXTERNAL_ID_CHARS_MAX = 255
ENTERED_BY_CHARS_MAX = 200


class Receivable(models.Model):
    """What the payer of an invoice owes. There is one for each issued invoice over more than 0."""

    invoice = models.OneToOneField(
        Invoice, on_delete=models.PROTECT, primary_key=True, related_name="receivable"
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="receivables"
    )
    currency = models.CharField(max_length=3)
    # The invoice's total; what was to be paid of it at issue, after the credit that was there; and
    # what is still open.
    amount_minor = models.BigIntegerField()
    payable_minor = models.BigIntegerField()
    open_minor = models.BigIntegerField()
    # The part of it that was written off and did not come in later.
    written_off_minor = models.BigIntegerField(default=0)
    # Null: nobody collects it.
    due_on = models.DateField(null=True, blank=True)
    # What a bank transfer names, without spaces.
    reference = models.CharField(max_length=REFERENCE_CHARS_MAX, unique=True)
    state = models.CharField(
        max_length=16, choices=ReceivableState.choices, default=ReceivableState.OPEN.value
    )
    created_at = models.DateTimeField(default=now)
    # When nothing was open any more; null while something is.
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = ReceivableQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(
                    amount_minor__gt=0,
                    open_minor__gte=0,
                    payable_minor__gte=0,
                    payable_minor__lte=F("amount_minor"),
                    written_off_minor__gte=0,
                    amount_minor__gte=F("open_minor") + F("written_off_minor"),
                ),
                name="open_is_a_part_of_the_amount",
            ),
            models.CheckConstraint(
                condition=Q(
                    state=ReceivableState.OPEN.value, open_minor__gt=0, settled_at__isnull=True
                )
                | Q(~Q(state=ReceivableState.OPEN.value), open_minor=0, settled_at__isnull=False),
                name="open_receivables_have_an_open_amount",
            ),
        )
        indexes = (
            models.Index(
                fields=["organization", "created_at", "invoice"],
                condition=Q(state=ReceivableState.OPEN.value),
                name="receivables_open",
            ),
            models.Index(
                fields=["due_on"],
                condition=Q(state=ReceivableState.OPEN.value),
                name="receivables_due",
            ),
            models.Index(fields=["-created_at", "-invoice"], name="receivables_newest"),
        )

    def __str__(self) -> str:
        return self.reference


class Payment(models.Model):
    """Money that came in."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "pay"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="payments"
    )
    method = models.CharField(max_length=16, choices=PaymentMethod.choices)
    # The id of Stripe's PaymentIntent, or the bank's reference.
    external_id = models.CharField(max_length=EXTERNAL_ID_CHARS_MAX)
    currency = models.CharField(max_length=3)
    amount_minor = models.BigIntegerField()
    # What pays no invoice: the customer's credit.
    unapplied_minor = models.BigIntegerField()
    # What was given back.
    refunded_minor = models.BigIntegerField(default=0)
    received_at = models.DateTimeField()
    entered_by = models.CharField(max_length=ENTERED_BY_CHARS_MAX)
    note = models.CharField(max_length=REASON_CHARS_MAX, blank=True)
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["method", "external_id"], name="one_payment_once"),
            models.CheckConstraint(
                condition=Q(amount_minor__gt=0, unapplied_minor__gte=0, refunded_minor__gte=0)
                & Q(amount_minor__gte=F("unapplied_minor") + F("refunded_minor")),
                name="payments_pay_their_amount",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="payments_newest"),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(unapplied_minor__gt=0),
                name="payments_unapplied",
            ),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.external_id}"


class Credit(models.Model):
    """An amount that we granted, which pays invoices and is never paid out."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "crd"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="credits")
    # What whoever granted it calls it, so that it is granted once; null: nothing.
    external_id = models.CharField(
        max_length=EXTERNAL_ID_CHARS_MAX, null=True, blank=True, unique=True
    )
    currency = models.CharField(max_length=3)
    amount_minor = models.BigIntegerField()
    unapplied_minor = models.BigIntegerField()
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    entered_by = models.CharField(max_length=ENTERED_BY_CHARS_MAX)
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(amount_minor__gt=0, unapplied_minor__gte=0)
                & Q(unapplied_minor__lte=F("amount_minor")),
                name="credits_pay_their_amount",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="credits_newest"),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(unapplied_minor__gt=0),
                name="credits_unapplied",
            ),
        )

    def __str__(self) -> str:
        return f"{self.pk} {self.amount_minor}"


class Refund(models.Model):
    """Money that we gave back. Never changes."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rfd"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="refunds")
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    # The method of the payment.
    method = models.CharField(max_length=16, choices=PaymentMethod.choices)
    external_id = models.CharField(max_length=EXTERNAL_ID_CHARS_MAX)
    amount_minor = models.BigIntegerField()
    # The part of it that was given: the invoices that it had paid stay paid.
    goodwill_minor = models.BigIntegerField(default=0)
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    entered_by = models.CharField(max_length=ENTERED_BY_CHARS_MAX)
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["method", "external_id"], name="one_refund_once"),
            models.CheckConstraint(
                condition=Q(amount_minor__gt=0, goodwill_minor__gte=0)
                & Q(goodwill_minor__lte=F("amount_minor")),
                name="refunds_give_back_something",
            ),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.external_id}"


class Dispute(models.Model):
    """Money of a payment that its bank took back until somebody decides whose it is.

    Invoices that it had paid stay paid meanwhile: the dispute settles them in the payment's place.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "dsp"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="disputes"
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    external_id = models.CharField(max_length=EXTERNAL_ID_CHARS_MAX, unique=True)
    amount_minor = models.BigIntegerField()
    # The part of it that settles no invoice, and is no credit before the dispute is won.
    unapplied_minor = models.BigIntegerField()
    state = models.CharField(
        max_length=8, choices=DisputeState.choices, default=DisputeState.OPEN.value
    )
    created_at = models.DateTimeField(default=now)
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(amount_minor__gt=0, unapplied_minor__gte=0)
                & Q(unapplied_minor__lte=F("amount_minor")),
                name="disputes_are_over_their_amount",
            ),
            models.CheckConstraint(
                condition=Q(state=DisputeState.OPEN.value, closed_at__isnull=True)
                | Q(~Q(state=DisputeState.OPEN.value), closed_at__isnull=False, unapplied_minor=0),
                name="closed_disputes_hold_nothing",
            ),
        )

    def __str__(self) -> str:
        return f"{self.external_id} {self.state}"


class Settlement(models.Model):
    """An amount by which a receivable became smaller, or, where negative, larger. Never changes.

    At most one of `payment`, `credit` and `dispute` is its source; write-offs and credit notes have
    none.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "stl"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    receivable = models.ForeignKey(Receivable, on_delete=models.PROTECT, related_name="settlements")
    kind = models.CharField(max_length=16, choices=SettlementKind.choices)
    amount_minor = models.BigIntegerField()
    payment = models.ForeignKey(
        Payment, on_delete=models.PROTECT, null=True, blank=True, related_name="settlements"
    )
    credit = models.ForeignKey(
        Credit, on_delete=models.PROTECT, null=True, blank=True, related_name="settlements"
    )
    dispute = models.ForeignKey(
        Dispute, on_delete=models.PROTECT, null=True, blank=True, related_name="settlements"
    )
    entry = models.ForeignKey(JournalEntry, on_delete=models.PROTECT, related_name="settlements")
    created_at = models.DateTimeField(default=now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.CheckConstraint(condition=~Q(amount_minor=0), name="settlements_settle"),
            models.CheckConstraint(
                condition=Q(payment__isnull=True, credit__isnull=True)
                | Q(payment__isnull=True, dispute__isnull=True)
                | Q(credit__isnull=True, dispute__isnull=True),
                name="settlements_have_one_source",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.amount_minor}"
