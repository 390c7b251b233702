"""Shapes of payment attempts and of what does not reconcile, for staff."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from billing.choices import AttemptOrigin, AttemptState, DifferenceKind, FailureKind
from billing.models import MoneyDifference, MoneyReconciliation, PaymentAttempt
from console.staff.api.serializers import (
    OrganizationQuerySerializer,
    StaffOrganizationSerializer,
)


class AttemptQuerySerializer(OrganizationQuerySerializer):
    """The parameters of a list of payment attempts."""

    failed = serializers.BooleanField(
        required=False, help_text="Only those that failed, or only the others."
    )


class StaffAttemptSerializer(serializers.ModelSerializer[PaymentAttempt]):
    """A charge of a card, and what became of it."""

    organization = StaffOrganizationSerializer()
    origin = serializers.ChoiceField(choices=AttemptOrigin.choices)
    state = serializers.ChoiceField(choices=AttemptState.choices)
    failure = serializers.ChoiceField(choices=FailureKind.choices, allow_blank=True)
    invoice_ids = serializers.SerializerMethodField()
    last_error = serializers.CharField(
        help_text="Why nothing is known of it, where the last call to Stripe said nothing."
    )
    intent_id = serializers.CharField(
        allow_null=True, help_text="The PaymentIntent; null where none is known."
    )

    class Meta:
        model = PaymentAttempt
        fields = (
            *("id", "organization", "origin", "state", "amount_minor", "currency", "invoice_ids"),
            *("failure", "failure_code", "failure_message", "last_error", "calls", "intent_id"),
            *("created_at", "sent_at", "settled_at", "check_at"),
        )
        read_only_fields = fields

    def get_invoice_ids(self, attempt: PaymentAttempt) -> list[str]:
        """Returns the invoices that it charges."""
        return [row.invoice_id for row in attempt.invoices.all()]


class DifferenceQuerySerializer(serializers.Serializer[Any]):
    """The parameters of a list of differences."""

    open = serializers.BooleanField(
        required=False, help_text="Only those that last, or only the others."
    )


class MoneyDifferenceSerializer(serializers.ModelSerializer[MoneyDifference]):
    """Something that does not agree between the ledger, the invoices and Stripe."""

    organization_id = serializers.CharField(help_text="Empty: nobody's that is known here.")
    kind = serializers.ChoiceField(choices=DifferenceKind.choices)
    subject = serializers.CharField(help_text="The id of what it is about, here or at Stripe.")
    ours_minor = serializers.IntegerField(allow_null=True, help_text="The amount here.")
    theirs_minor = serializers.IntegerField(
        allow_null=True, help_text="The amount at Stripe, or of the rows behind the ledger."
    )
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null: it lasts.")

    class Meta:
        model = MoneyDifference
        fields = (
            *("id", "organization_id", "kind", "subject", "ours_minor", "theirs_minor"),
            *("currency", "happened_at", "created_at", "seen_at", "ended_at"),
        )
        read_only_fields = fields


class ReconciliationSerializer(serializers.ModelSerializer[MoneyReconciliation]):
    """A comparison of the ledger, the invoices and Stripe."""

    differences = serializers.IntegerField(help_text="How many lasted at its end.")
    reason = serializers.CharField(help_text="Why it did not end yet; empty where it did.")
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        model = MoneyReconciliation
        fields = (
            *("id", "begins_at", "ends_at", "compared", "differences", "reason"),
            *("created_at", "finished_at"),
        )
        read_only_fields = fields
