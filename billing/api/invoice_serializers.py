"""Shapes of prices, invoices and billing details."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.catalog import BASE_UNITS
from billing.choices import (
    PAID_BY,
    SHOWN_STATES,
    InvoiceKind,
    LineKind,
    Meter,
    PriceUnit,
    ReceivableState,
    TaxCategory,
)
from billing.models import Invoice, InvoiceLine, Price, Receivable
from billing.models.details import LINE_CHARS_MAX, LINES_MAX
from billing.money import price_text
from console.base.common.api.lines import one_line
from console.base.common.api.whole import WholeField
from console.base.common.conf import config


def receivable_of(invoice: Invoice) -> Receivable | None:
    """What is owed for an invoice; None for drafts, credit notes and invoices over nothing."""
    return getattr(invoice, "receivable", None)


class PriceSerializer(serializers.Serializer[Any]):
    """The price of a meter."""

    meter = serializers.ChoiceField(choices=Meter.choices)
    name = serializers.CharField(source="get_meter_display")
    unit_price = serializers.SerializerMethodField(help_text="A decimal, in the currency.")
    unit = serializers.ChoiceField(
        choices=PriceUnit.choices, help_text="The unit that the price is for."
    )
    free_units = serializers.IntegerField(
        help_text="Free of charge for an organization in a month, in `free_unit`."
    )
    free_unit = serializers.ChoiceField(choices=PriceUnit.choices)
    base_unit = serializers.SerializerMethodField(help_text="The unit of quantities of usage.")

    def get_unit_price(self, price: Price) -> str:
        """The price as a decimal with at least two places, without trailing zeros."""
        return price_text(price.unit_price)

    def get_base_unit(self, price: Price) -> str:
        """The unit that usage and invoices count this meter in."""
        return BASE_UNITS[price.meter]


class PriceListSerializer(serializers.Serializer[Any]):
    """The prices of the current month."""

    id = serializers.CharField()
    valid_from = serializers.DateField()
    currency = serializers.CharField()
    prices = PriceSerializer(many=True)


class PartySerializer(serializers.Serializer[Any]):
    """One side of an invoice, as it was when it was issued."""

    name = serializers.CharField()
    address = serializers.ListField(child=serializers.CharField())
    country = serializers.CharField()
    vat_id = serializers.CharField()
    registration = serializers.CharField()
    email = serializers.CharField()


class TaxSerializer(serializers.Serializer[Any]):
    """The value added tax of an invoice."""

    category = serializers.ChoiceField(choices=TaxCategory.choices, help_text="UNCL 5305.")
    percent = serializers.CharField()
    reason = serializers.CharField(help_text="Why no tax is charged; empty where tax is charged.")


class ClosedEarlySerializer(serializers.Serializer[Any]):
    """Why a month was invoiced before it was closed, and what was missing."""

    reason = serializers.CharField()
    by = serializers.CharField()
    days_without_roll_up = serializers.ListField(child=serializers.DateField())
    days_with_newer_files = serializers.ListField(child=serializers.DateField())
    incomplete_hours = serializers.IntegerField()


class InvoiceLineSerializer(serializers.Serializer[Any]):
    """One amount of an invoice."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=LineKind.choices)
    meter = serializers.CharField(help_text="Empty for a line that is not for usage.")
    cluster_id = serializers.CharField()
    cluster = serializers.CharField(help_text="The cluster's name when the invoice was issued.")
    description = serializers.CharField()
    quantity = WholeField(allow_null=True, help_text="In `unit`, exactly.")
    unit = serializers.SerializerMethodField()
    free_quantity = WholeField(
        allow_null=True, help_text="The part of it that the free allowance covers."
    )
    unit_price = serializers.SerializerMethodField(help_text="A decimal, of one `price_unit`.")
    price_unit = serializers.CharField()
    price_unit_size = serializers.IntegerField(
        allow_null=True, help_text="How many `unit`s are in one `price_unit`."
    )
    amount_minor = serializers.IntegerField(
        help_text="The lines of a meter and price share its sum, which is rounded once, half up."
    )
    usage_row_ids = serializers.SerializerMethodField(
        help_text="The rows of `/usage` that the quantity is the sum of."
    )

    def get_unit(self, line: InvoiceLine) -> str:
        """The meter's base unit."""
        return BASE_UNITS.get(line.meter, "")

    def get_unit_price(self, line: InvoiceLine) -> str | None:
        """Without needless zeros."""
        return None if line.unit_price is None else price_text(line.unit_price)

    def get_usage_row_ids(self, line: InvoiceLine) -> list[str]:
        """The ids of the line's usage rows, which the view reads once for all lines."""
        ids: dict[tuple[str, str], list[str]] = self.context.get("usage_row_ids", {})
        return ids.get((line.cluster_id, line.meter), [])


class InvoicePaymentSerializer(serializers.Serializer[Any]):
    """A payment or a credit, and how much of it pays an invoice."""

    id = serializers.CharField()
    method = serializers.ChoiceField(choices=PAID_BY)
    amount_minor = serializers.IntegerField(
        help_text="What of it pays this invoice; it may have paid more than that."
    )
    received_at = serializers.DateTimeField()


class InvoiceSummarySerializer(serializers.Serializer[Any]):
    """An invoice or a credit note, without its lines."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=InvoiceKind.choices)
    number = serializers.CharField(allow_null=True, help_text="Null: a draft has none.")
    state = serializers.ChoiceField(source="shown_state", choices=SHOWN_STATES)
    month = serializers.SerializerMethodField(help_text="YYYY-MM, in UTC.")
    currency = serializers.CharField(help_text="ISO 4217.")
    subtotal_minor = serializers.IntegerField(help_text="In minor units, such as cents.")
    tax_minor = serializers.IntegerField()
    total_minor = serializers.IntegerField()
    open_minor = serializers.SerializerMethodField(
        help_text="What of the total is still to be paid. 0 for drafts and credit notes."
    )
    due_on = serializers.SerializerMethodField(
        help_text="The last day on which it is paid in time, UTC; null: nobody collects it."
    )
    paid_at = serializers.SerializerMethodField(help_text="When all of it was paid.")
    reference = serializers.SerializerMethodField(
        help_text="What a bank transfer must name; empty where none pays it."
    )
    issued_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    sha256 = serializers.SerializerMethodField(
        help_text="The hash of the PDF; null until it is made, some seconds after issuing."
    )

    def get_month(self, invoice: Invoice) -> str:
        """The month, as `YYYY-MM`."""
        return f"{invoice.month:%Y-%m}"

    def get_open_minor(self, invoice: Invoice) -> int:
        """What is open; 0 where nothing is owed for it."""
        receivable = receivable_of(invoice)
        return 0 if receivable is None else receivable.open_minor

    def get_due_on(self, invoice: Invoice) -> date | None:
        """The due date of what is owed for it."""
        receivable = receivable_of(invoice)
        return None if receivable is None else receivable.due_on

    def get_paid_at(self, invoice: Invoice) -> datetime | None:
        """When it was paid; None in every other state."""
        receivable = receivable_of(invoice)
        if receivable is None or receivable.state != ReceivableState.PAID:
            return None
        return receivable.settled_at

    def get_reference(self, invoice: Invoice) -> str:
        """The reference of a transfer, without spaces."""
        receivable = receivable_of(invoice)
        by_transfer = config().billing.collector == "transfer"
        return receivable.reference if receivable is not None and by_transfer else ""

    def get_sha256(self, invoice: Invoice) -> str | None:
        """The SHA-256 of the stored PDF; null until there is one."""
        document = getattr(invoice, "document", None)
        return None if document is None else str(document.sha256)


class InvoiceSerializer(InvoiceSummarySerializer):
    """An invoice or a credit note, with all that it says."""

    lines = InvoiceLineSerializer(many=True)
    payments = serializers.SerializerMethodField(
        help_text="What pays it: payments, also disputed ones, and credits."
    )
    seller = PartySerializer()
    customer = PartySerializer()
    tax = TaxSerializer()
    price_version = serializers.CharField(source="price_version_id")
    closed_early = ClosedEarlySerializer(allow_null=True)
    credits_id = serializers.CharField(
        allow_null=True, help_text="Only for a credit note: the invoice that it takes back."
    )
    credit_note_id = serializers.SerializerMethodField(
        help_text="Only for a void invoice: the credit note that takes it back."
    )
    reason = serializers.CharField(help_text="Only for a credit note: why it was issued.")

    @extend_schema_field(InvoicePaymentSerializer(many=True))
    def get_payments(self, invoice: Invoice) -> Any:
        """The payments and credits of the invoice, which the view reads once."""
        return InvoicePaymentSerializer(self.context.get("payments", ()), many=True).data

    def get_credit_note_id(self, invoice: Invoice) -> str | None:
        """The id of the credit note that takes the invoice back.

        It is read from the credit note, because an issued invoice itself never changes.
        """
        note = getattr(invoice, "credit_note", None)
        return None if note is None else str(note.pk)


class BillingDetailsSerializer(serializers.Serializer[Any]):
    """Whom invoices are addressed to, from the next one on."""

    legal_name = serializers.CharField(
        max_length=LINE_CHARS_MAX,
        allow_blank=True,
        validators=[one_line],
        help_text="Empty: the organization's name.",
    )
    address = serializers.ListField(
        child=serializers.CharField(max_length=LINE_CHARS_MAX, validators=[one_line]),
        max_length=LINES_MAX,
    )
    country = serializers.RegexField(
        r"^[A-Z]{2}$", allow_blank=True, help_text="ISO 3166-1 alpha-2."
    )
    vat_id = serializers.RegexField(
        r"^[A-Z]{2}[A-Z0-9+*]{2,13}$", allow_blank=True, help_text="With its country's prefix."
    )
    email = serializers.EmailField(
        allow_blank=True,
        max_length=254,
        help_text="Invoices are mailed there. Empty: to the members who look after money.",
    )
    generation = serializers.IntegerField(read_only=True)
