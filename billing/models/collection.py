"""Cards, payment attempts, dunning, Stripe's events, and what does not reconcile.

What Stripe is to be asked is stored before it is asked. `billing/collection/README.md` says who
writes what.
"""

from __future__ import annotations

from functools import partial

from django.db import models
from django.db.models import Q

from billing.choices import (
    AttemptOrigin,
    AttemptState,
    DifferenceKind,
    DunningStage,
    FailureKind,
    NoticeKind,
    RefundState,
)
from billing.models.invoice import REASON_CHARS_MAX, Invoice
from billing.models.payers import Payer
from billing.models.receivables import ENTERED_BY_CHARS_MAX, Payment
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

# Stripe's ids have 255 characters at most.
STRIPE_ID_CHARS_MAX = 255
CODE_CHARS_MAX = 64
MESSAGE_CHARS_MAX = 500
ADDRESS_CHARS_MAX = 2_048
LIVE_STATES = (
    AttemptState.PREPARED.value,
    AttemptState.SENT.value,
    AttemptState.UNKNOWN.value,
    AttemptState.REQUIRES_ACTION.value,
    AttemptState.PROCESSING.value,
)


class CardAccount(models.Model):
    """An organization's customer at Stripe, and the card that is charged."""

    organization = models.OneToOneField(
        Organization, on_delete=models.PROTECT, primary_key=True, related_name="card_account"
    )
    # Null until Stripe has answered with it.
    customer_id = models.CharField(
        max_length=STRIPE_ID_CHARS_MAX, null=True, blank=True, unique=True
    )
    # Empty: there is no card. The rest is what Stripe says of the card.
    method_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, blank=True)
    brand = models.CharField(max_length=32, blank=True)
    last4 = models.CharField(max_length=4, blank=True)
    expires_month = models.PositiveSmallIntegerField(null=True, blank=True)
    expires_year = models.PositiveSmallIntegerField(null=True, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    # The Checkout session by which somebody gives a card; empty once it is complete or expired.
    setup_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, blank=True)
    # When Stripe is asked for the state of that session, should no webhook come.
    check_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        indexes = (
            models.Index(
                fields=["check_at"],
                condition=Q(check_at__isnull=False),
                name="card_accounts_to_check",
            ),
        )

    def __str__(self) -> str:
        return f"{self.brand} {self.last4}".strip() or str(self.pk)


class PaymentAttempt(models.Model):
    """One PaymentIntent: a charge of one invoice, of several small ones together, or in advance."""

    # Derived from the first invoice and the number, so that it is the same in a restored database.
    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="payment_attempts"
    )
    # The invoice that the key names, and how many attempts there were of it, this one included.
    # Null: it is charged in advance, for what no invoice has yet.
    first_invoice = models.ForeignKey(
        Invoice, on_delete=models.PROTECT, null=True, blank=True, related_name="payment_attempts"
    )
    # Whose card it is; null where that is not known.
    payer = models.ForeignKey(
        Payer, on_delete=models.PROTECT, null=True, blank=True, related_name="payment_attempts"
    )
    number = models.PositiveIntegerField()
    # `inv:<id>:pay:<n>` or `org:<id>:advance:<n>`: by it Stripe knows the same request.
    key = models.CharField(max_length=STRIPE_ID_CHARS_MAX, unique=True)
    origin = models.CharField(max_length=16, choices=AttemptOrigin.choices)
    state = models.CharField(
        max_length=16, choices=AttemptState.choices, default=AttemptState.PREPARED.value
    )
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    customer_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX)
    method_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX)
    # The PaymentIntent and its charge, once they are known.
    intent_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, null=True, blank=True, unique=True)
    # Where the customer authenticates.
    action_url = models.CharField(max_length=ADDRESS_CHARS_MAX, blank=True)
    failure = models.CharField(max_length=24, choices=FailureKind.choices, blank=True)
    # Stripe's code, or its decline code, and its text.
    failure_code = models.CharField(max_length=CODE_CHARS_MAX, blank=True)
    failure_message = models.CharField(max_length=MESSAGE_CHARS_MAX, blank=True)
    # What the last call said where it did not say what became of the attempt.
    last_error = models.CharField(max_length=MESSAGE_CHARS_MAX, blank=True)
    calls = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    # When Stripe is asked again, should no webhook come; null once it is settled.
    check_at = models.DateTimeField(null=True, blank=True, default=now)

    class Meta:
        constraints = (
            # What keeps an invoice from being charged twice at a time.
            models.UniqueConstraint(
                fields=["organization"],
                condition=Q(state__in=LIVE_STATES),
                name="one_live_attempt",
            ),
            models.UniqueConstraint(
                fields=["first_invoice", "number"], name="one_attempt_a_number"
            ),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="attempts_charge"),
            models.CheckConstraint(
                condition=Q(state__in=LIVE_STATES, settled_at__isnull=True)
                | (~Q(state__in=LIVE_STATES) & Q(settled_at__isnull=False)),
                name="ended_attempts_are_settled",
            ),
        )
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="attempts_newest"),
            models.Index(fields=["-created_at", "-id"], name="attempts_newest_of_all"),
            models.Index(
                fields=["check_at"], condition=Q(check_at__isnull=False), name="attempts_to_check"
            ),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def is_live(self) -> bool:
        """Whether it can still charge."""
        return self.state in LIVE_STATES


class AttemptInvoice(models.Model):
    """An invoice that an attempt charges, and with how much."""

    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    attempt = models.ForeignKey(PaymentAttempt, on_delete=models.PROTECT, related_name="invoices")
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="attempts")
    amount_minor = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["attempt", "invoice"], name="one_row_an_invoice"),
        )

    def __str__(self) -> str:
        return f"{self.attempt_id} {self.invoice_id}"


class RefundAttempt(models.Model):
    """A refund of a card payment that Stripe is asked for."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rfa"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="refund_attempts"
    )
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refund_attempts")
    # What the person who asks for it calls it, so that a repeated request is the same refund.
    request_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, unique=True)
    intent_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    entered_by = models.CharField(max_length=ENTERED_BY_CHARS_MAX)
    # Whether the invoices that it had paid stay paid.
    is_goodwill = models.BooleanField(default=False)
    state = models.CharField(
        max_length=16, choices=RefundState.choices, default=RefundState.PREPARED.value
    )
    refund_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, null=True, blank=True, unique=True)
    last_error = models.CharField(max_length=MESSAGE_CHARS_MAX, blank=True)
    calls = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(null=True, blank=True)
    check_at = models.DateTimeField(null=True, blank=True, default=now)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="refunds_give_back"),
        )
        indexes = (
            models.Index(
                fields=["check_at"], condition=Q(check_at__isnull=False), name="refunds_to_check"
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)


class UnpaidInvoice(models.Model):
    """An invoice that was to be paid and was not: since when, and when it is charged again."""

    invoice = models.OneToOneField(
        Invoice, on_delete=models.PROTECT, primary_key=True, related_name="unpaid"
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="unpaid_invoices"
    )
    # When it failed first, was due, or was open again. Null: it failed by a fault that is not the
    # customer's.
    since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failure = models.CharField(max_length=24, choices=FailureKind.choices)
    # When it is charged again; null: only when the customer does something.
    next_try_at = models.DateTimeField(null=True, blank=True)
    # When it was paid, written off or taken back.
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (
            models.Index(
                fields=["organization", "since"],
                condition=Q(ended_at__isnull=True),
                name="unpaid_invoices_open",
            ),
        )

    def __str__(self) -> str:
        return str(self.pk)


class DunningNotice(models.Model):
    """A mail about an unpaid invoice: noted with the change that it is about, sent once."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "dun"), editable=False
    )
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="dunning_notices"
    )
    kind = models.CharField(max_length=16, choices=NoticeKind.choices)
    # The stage that it announces, or that began.
    stage = models.CharField(max_length=16, choices=DunningStage.choices, blank=True)
    failure = models.CharField(max_length=24, choices=FailureKind.choices, blank=True)
    # When what it announces happens.
    acts_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    sent_at = models.DateTimeField(null=True, blank=True)
    # When the mail server last refused it, or could not be reached.
    failed_at = models.DateTimeField(null=True, blank=True)
    # The number of addresses; 0 where no member has the permission `billing`.
    recipients = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = (
            models.Index(fields=["organization", "-created_at", "-id"], name="notices_newest"),
            models.Index(
                fields=["created_at"], condition=Q(sent_at__isnull=True), name="notices_due"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.stage}".strip()


class Dunning(models.Model):
    """The calendar after an unpaid invoice, of one organization."""

    organization = models.OneToOneField(
        Organization, on_delete=models.PROTECT, primary_key=True, related_name="dunning"
    )
    stage = models.CharField(
        max_length=16, choices=DunningStage.choices, default=DunningStage.PAID.value
    )
    # Since when the oldest invoice is unpaid that counts; null: none is.
    since = models.DateTimeField(null=True, blank=True)
    # The mail before the next step.
    announcement = models.ForeignKey(
        DunningNotice, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # Whether dunning suspended the account, and so is to make it active again.
    put_to_sleep = models.BooleanField(default=False)
    # When the calendar is looked at again; null: when an invoice becomes unpaid.
    check_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        indexes = (
            models.Index(
                fields=["check_at"], condition=Q(check_at__isnull=False), name="dunnings_to_check"
            ),
        )

    def __str__(self) -> str:
        return f"{self.organization_id} {self.stage}"


class StripeEvent(models.Model):
    """An event of Stripe by its id: what happened is asked for anew, so no more of it is kept."""

    id = models.CharField(primary_key=True, max_length=STRIPE_ID_CHARS_MAX)
    type = models.CharField(max_length=100)
    # The object that it is about.
    object_id = models.CharField(max_length=STRIPE_ID_CHARS_MAX, blank=True)
    # When it happened at Stripe, and when it came here: by a webhook, or as one that was missed.
    happened_at = models.DateTimeField()
    received_at = models.DateTimeField(default=now)
    by_webhook = models.BooleanField(default=True)
    handled_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=MESSAGE_CHARS_MAX, blank=True)
    check_at = models.DateTimeField(null=True, blank=True, default=now)

    class Meta:
        indexes = (
            models.Index(
                fields=["check_at"], condition=Q(check_at__isnull=False), name="events_to_check"
            ),
            models.Index(fields=["-happened_at"], name="events_newest"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


class StripeCursor(models.Model):
    """Until when the events that Stripe lists were read, so that none is missed for want of a
    webhook."""

    name = models.CharField(primary_key=True, max_length=16)
    read_to = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} {self.read_to:%Y-%m-%d %H:%M}"


class MoneyReconciliation(models.Model):
    """A comparison of the ledger, the invoices and Stripe."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rec"), editable=False
    )
    created_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True, blank=True)
    # The time that Stripe's objects are from.
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    # How many payments, refunds, disputes and receivables were compared.
    compared = models.PositiveIntegerField(default=0)
    # How many differences were open at its end.
    differences = models.PositiveIntegerField(default=0)
    # Why it did not finish.
    reason = models.CharField(max_length=MESSAGE_CHARS_MAX, blank=True)

    class Meta:
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="money_reconciliations_newest"),
        )

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M}"


class MoneyDifference(models.Model):
    """Something that does not agree, from the comparison that found it to the one that did not."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "dif"), editable=False
    )
    # Empty: it belongs to nobody that is known here.
    organization_id = models.CharField(max_length=ID_CHARS_MAX, blank=True)
    kind = models.CharField(max_length=24, choices=DifferenceKind.choices)
    # The id of the payment, the refund or the invoice, here or at Stripe.
    subject = models.CharField(max_length=STRIPE_ID_CHARS_MAX)
    # The amount here and the other one; null: there is none.
    ours_minor = models.BigIntegerField(null=True, blank=True)
    theirs_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    # When what differs happened.
    happened_at = models.DateTimeField()
    created_at = models.DateTimeField(default=now)
    seen_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=Q(ended_at__isnull=True),
                name="one_open_difference",
            ),
        )
        indexes = (models.Index(fields=["-created_at", "-id"], name="differences_newest"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
