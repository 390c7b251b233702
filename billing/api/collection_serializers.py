"""Shapes of payment methods, payments, and what an organization owes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.choices import (
    AttemptState,
    DunningStage,
    FailureKind,
    PayerRefusal,
    PaymentMethod,
)
from billing.models import Payment
from console.settings.sections import COLLECTORS


class CardSerializer(serializers.Serializer[Any]):
    """The card that is charged."""

    brand = serializers.CharField(help_text="Such as `visa`.")
    last4 = serializers.CharField(help_text="The last digits of its number.")
    expires_month = serializers.IntegerField(allow_null=True)
    expires_year = serializers.IntegerField(allow_null=True)


class PaymentMethodSerializer(serializers.Serializer[Any]):
    """How an organization pays."""

    collector = serializers.ChoiceField(
        choices=[(name, name) for name in COLLECTORS],
        help_text="`none`: invoices are not collected; `transfer`: by bank transfer; `stripe`: by "
        "card.",
    )
    card = CardSerializer(allow_null=True, help_text="Null: none was given.")
    can_manage = serializers.BooleanField(
        help_text="Whether there is a page on which the card is changed or removed."
    )
    refusal = serializers.ChoiceField(
        choices=PayerRefusal.choices,
        allow_blank=True,
        help_text="Why the card does not pay for this organization yet, which has what is left of "
        "its trial until then; empty where it does. `unpaid`: it has unpaid invoices in another "
        "organization. `small_debts`: it owes amounts that are too small for a card in many. "
        "`disputed`: a charge of it is disputed. `unproved`: it has paid too little so far for "
        "what other organizations use with it.",
    )
    advance_minor = serializers.IntegerField(
        allow_null=True,
        help_text="What is to be paid in advance (`POST /payment-method/advance`), as the card has "
        "paid too little so far for what is used with it; null where nothing is.",
    )
    currency = serializers.CharField(help_text="That of `advance_minor`.")


class RedirectSerializer(serializers.Serializer[Any]):
    """A page of Stripe to lead the browser to."""

    url = serializers.URLField()


class PayInputSerializer(serializers.Serializer[Any]):
    """What is paid."""

    with_older = serializers.BooleanField(
        default=False, help_text="Together with every older invoice that is open."
    )


class PaymentAttemptSerializer(serializers.Serializer[Any]):
    """What became of a payment that was asked for."""

    id = serializers.CharField()
    state = serializers.ChoiceField(
        choices=AttemptState.choices,
        help_text="`requires_action`: lead the browser to `url`, where the customer authenticates. "
        "`succeeded`, `failed` and `canceled` are final; other states change by themselves.",
    )
    amount_minor = serializers.IntegerField()
    currency = serializers.CharField()
    invoice_ids = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField(help_text="Null but in the state `requires_action`.")
    failure = serializers.ChoiceField(
        choices=FailureKind.choices, allow_blank=True, help_text="Why it failed; else empty."
    )
    message = serializers.CharField(
        source="failure_message", help_text="What the bank says about it; may be empty."
    )

    def get_invoice_ids(self, attempt: Any) -> list[str]:
        """The invoices that it charges."""
        return list(attempt.invoices.order_by("pk").values_list("invoice_id", flat=True))

    def get_url(self, attempt: Any) -> str | None:
        """The page on which the customer authenticates."""
        waits = attempt.state == AttemptState.REQUIRES_ACTION
        return attempt.action_url or None if waits else None


class PaidInvoiceSerializer(serializers.Serializer[Any]):
    """An invoice that a payment paid, and with how much."""

    id = serializers.CharField()
    number = serializers.CharField()
    amount_minor = serializers.IntegerField()


class PaymentSerializer(serializers.ModelSerializer[Payment]):
    """Money that came in."""

    method = serializers.ChoiceField(choices=PaymentMethod.choices)
    credit_minor = serializers.IntegerField(
        source="unapplied_minor", help_text="What pays no invoice yet."
    )
    refunded_minor = serializers.IntegerField(help_text="What was given back.")
    invoices = serializers.SerializerMethodField()

    class Meta:
        model = Payment
        fields = (
            *("id", "method", "amount_minor", "currency", "credit_minor", "refunded_minor"),
            *("received_at", "invoices"),
        )
        read_only_fields = fields

    @extend_schema_field(PaidInvoiceSerializer(many=True))
    def get_invoices(self, payment: Payment) -> list[dict[str, Any]]:
        """The invoices that it pays, in the order in which it came to pay them."""
        amounts: dict[str, int] = {}
        numbers: dict[str, str] = {}
        for row in payment.settlements.all():
            amounts[row.receivable_id] = amounts.get(row.receivable_id, 0) + row.amount_minor
            numbers[row.receivable_id] = str(row.receivable.invoice.number)
        return [
            {"id": pk, "number": numbers[pk], "amount_minor": amount}
            for pk, amount in amounts.items()
            if amount
        ]


class StepSerializer(serializers.Serializer[Any]):
    """What happens next to who does not pay."""

    stage = serializers.ChoiceField(choices=DunningStage.choices)
    at = serializers.DateTimeField()


class AccountSerializer(serializers.Serializer[Any]):
    """What an organization owes, and what follows from it."""

    collector = serializers.ChoiceField(choices=[(name, name) for name in COLLECTORS])
    stage = serializers.ChoiceField(
        choices=DunningStage.choices,
        help_text="`unpaid`: an invoice was to be paid and was not. `suspended`: produce and fetch "
        "are refused. `asleep`: no client reaches the clusters. `deleted`: they are deleted.",
    )
    currency = serializers.CharField()
    open_minor = serializers.IntegerField(
        allow_null=True,
        help_text="What is open of all invoices. Null, as other amounts, without a role in the "
        "organization.",
    )
    unpaid_minor = serializers.IntegerField(
        allow_null=True, help_text="What is open of those that were to be paid and were not."
    )
    credit_minor = serializers.IntegerField(
        allow_null=True, help_text="What pays the next invoice."
    )
    unpaid_since = serializers.DateTimeField(allow_null=True)
    unpaid_invoice_ids = serializers.ListField(
        child=serializers.CharField(),
        help_text="Oldest first. Empty without a role in the organization.",
    )
    failure = serializers.ChoiceField(
        choices=FailureKind.choices,
        allow_blank=True,
        help_text="Why the oldest of them is unpaid; empty: none is.",
    )
    next_step = StepSerializer(allow_null=True)
    next_charge_at = serializers.DateTimeField(
        allow_null=True, help_text="When the card is charged again by itself."
    )
