"""JSON shapes of what customers owe and pay, as staff enters and sees it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from billing.choices import PaymentMethod, ReceivableState
from billing.models import Credit, Payment, Receivable
from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import EXTERNAL_ID_CHARS_MAX
from billing.money import CURRENCIES, ENTERED_MINOR_MAX
from billing.periods import require_past
from billing.receivables.services import is_collected
from console.base.common.clock import now
from console.staff.api.serializers import (
    ORGANIZATION_ID,
    OrganizationQuerySerializer,
    StaffOrganizationSerializer,
)

INVOICE_ID = r"^inv_[a-z2-7]{20}$"
PAYMENT_ID = r"^pay_[a-z2-7]{20}$"
# Stripe enters card payments itself.
ENTERED_METHODS = [
    choice for choice in PaymentMethod.choices if choice[0] != PaymentMethod.CARD.value
]


class ReceivableQuerySerializer(OrganizationQuerySerializer):
    """The query parameters of the list of what is owed."""

    state = serializers.ChoiceField(
        choices=ReceivableState.choices, required=False, help_text="Default: open."
    )
    overdue = serializers.BooleanField(
        required=False, default=False, help_text="Only what was due before today, and is open."
    )


class StaffReceivableSerializer(serializers.ModelSerializer[Receivable]):
    """What is owed for an invoice."""

    invoice_id = serializers.CharField()
    number = serializers.CharField(source="invoice.number")
    organization = StaffOrganizationSerializer()
    state = serializers.ChoiceField(choices=ReceivableState.choices)
    open_minor = serializers.IntegerField(help_text="In minor units, such as cents.")
    written_off_minor = serializers.IntegerField()
    overdue = serializers.SerializerMethodField()
    reference = serializers.CharField(help_text="What a transfer names.")

    class Meta:
        model = Receivable
        fields = (
            *("invoice_id", "number", "organization", "state", "currency", "amount_minor"),
            *("open_minor", "written_off_minor", "due_on", "overdue", "reference"),
            *("created_at", "settled_at"),
        )
        read_only_fields = fields

    def get_overdue(self, row: Receivable) -> bool:
        """Whether it is open, and was due before today."""
        is_late = row.due_on is not None and row.due_on < now().date()
        return is_late and row.state == ReceivableState.OPEN and is_collected()


class StaffPaymentSerializer(serializers.ModelSerializer[Payment]):
    """Money that came in."""

    organization = StaffOrganizationSerializer()
    method = serializers.ChoiceField(choices=PaymentMethod.choices)
    external_id = serializers.CharField(help_text="The bank's reference, or Stripe's id.")
    unapplied_minor = serializers.IntegerField(help_text="What pays no invoice: a credit.")
    entered_by = serializers.CharField(help_text="Who entered it.")

    class Meta:
        model = Payment
        fields = (
            *("id", "organization", "method", "external_id", "currency", "amount_minor"),
            *("unapplied_minor", "refunded_minor", "received_at", "entered_by", "note"),
            "created_at",
        )
        read_only_fields = fields


class PaymentInputSerializer(serializers.Serializer[Any]):
    """A payment to enter, of an organization or for what is owed under a reference."""

    organization_id = serializers.RegexField(
        ORGANIZATION_ID, required=False, help_text="Not needed where `reference` says whose it is."
    )
    reference = serializers.CharField(
        max_length=64,
        required=False,
        help_text="A transfer's reference or an invoice number: that invoice is paid first.",
    )
    invoice_ids = serializers.ListField(
        child=serializers.RegexField(INVOICE_ID),
        required=False,
        max_length=100,
        help_text="Invoices that are paid first, in this order; then the oldest ones are.",
    )
    method = serializers.ChoiceField(
        choices=ENTERED_METHODS, required=False, default=PaymentMethod.TRANSFER.value
    )
    amount_minor = serializers.IntegerField(min_value=1, max_value=ENTERED_MINOR_MAX)
    currency = serializers.ChoiceField(choices=sorted(CURRENCIES), help_text="ISO 4217.")
    external_id = serializers.CharField(
        max_length=EXTERNAL_ID_CHARS_MAX,
        help_text="The bank's own id of the payment: what is entered twice counts once.",
    )
    received_at = serializers.DateTimeField()
    note = serializers.CharField(
        max_length=REASON_CHARS_MAX, required=False, allow_blank=True, default=""
    )

    def validate_received_at(self, received_at: datetime) -> datetime:
        """It is not still to come, and not before there was anything to pay."""
        try:
            return require_past(received_at, now())
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Exactly one of the organization and the reference says whose payment it is."""
        if ("organization_id" in attrs) == ("reference" in attrs):
            message = "Give either organization_id or reference."
            raise serializers.ValidationError({"organization_id": message})
        return attrs


class StaffCreditSerializer(serializers.ModelSerializer[Credit]):
    """A credit that was granted."""

    organization = StaffOrganizationSerializer()
    unapplied_minor = serializers.IntegerField(help_text="What of it pays no invoice yet.")

    class Meta:
        model = Credit
        fields = (
            *("id", "organization", "external_id", "currency", "amount_minor", "unapplied_minor"),
            *("reason", "entered_by", "created_at"),
        )
        read_only_fields = fields


class CreditInputSerializer(serializers.Serializer[Any]):
    """A credit to grant."""

    organization_id = serializers.RegexField(ORGANIZATION_ID)
    amount_minor = serializers.IntegerField(min_value=1, max_value=ENTERED_MINOR_MAX)
    currency = serializers.ChoiceField(choices=sorted(CURRENCIES), help_text="ISO 4217.")
    reason = serializers.CharField(max_length=REASON_CHARS_MAX)
    external_id = serializers.CharField(
        max_length=EXTERNAL_ID_CHARS_MAX,
        help_text="A name of your own, such as a ticket's: what is granted twice counts once.",
    )


class WriteOffInputSerializer(serializers.Serializer[Any]):
    """An invoice whose open amount is given up."""

    invoice_id = serializers.RegexField(INVOICE_ID)
    reason = serializers.CharField(max_length=REASON_CHARS_MAX)


class RefundInputSerializer(serializers.Serializer[Any]):
    """A refund to make (card) or to enter (all others)."""

    payment_id = serializers.RegexField(PAYMENT_ID)
    amount_minor = serializers.IntegerField(min_value=1, max_value=ENTERED_MINOR_MAX)
    external_id = serializers.CharField(
        max_length=EXTERNAL_ID_CHARS_MAX,
        help_text="The bank's own id, or for a card a name of your own: it is refunded once.",
    )
    reason = serializers.CharField(max_length=REASON_CHARS_MAX)
    is_goodwill = serializers.BooleanField(
        required=False,
        default=False,
        help_text="The invoices that it had paid stay paid.",
    )


class StaffRefundSerializer(serializers.Serializer[Any]):
    """A refund: entered, or for a card on its way to Stripe."""

    id = serializers.CharField()
    payment_id = serializers.CharField()
    organization_id = serializers.CharField()
    external_id = serializers.CharField()
    amount_minor = serializers.IntegerField()
    reason = serializers.CharField()
    entered_by = serializers.CharField()
    made = serializers.BooleanField(help_text="False: Stripe is asked to make it.")
    created_at = serializers.DateTimeField()
