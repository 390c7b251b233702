"""`manage.py refund_payment PAYMENT AMOUNT --id ID --reason REASON`: enters money given back."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.choices import PaymentMethod
from billing.models import Payment
from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX, EXTERNAL_ID_CHARS_MAX
from billing.money import minor_amount, readable_amount
from billing.receivables.services import refund_payment
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of
from console.base.common.tenancy import organization_scope, system_scope


class Command(BaseCommand):
    """Enters a refund of a payment that no card made. Those of cards are made by Stripe."""

    help = "Enter a refund of a bank transfer."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the payment, the amount and the reason."""
        parser.add_argument("payment", help="pay_…")
        parser.add_argument("amount", help="in major units, such as 12.50")
        parser.add_argument(
            "--id",
            required=True,
            type=line_of(EXTERNAL_ID_CHARS_MAX),
            help="the bank's id of the refund; entered twice it counts once",
        )
        parser.add_argument(
            "--reason", required=True, type=line_of(REASON_CHARS_MAX), help="for the audit log"
        )
        parser.add_argument(
            "--goodwill", action="store_true", help="the invoices that it had paid stay paid"
        )
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who decides (default: the system's user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Enters the refund. Raises `CommandError` with the reason where it cannot."""
        with system_scope():
            payment = Payment.objects.filter(pk=options["payment"]).first()
        if payment is None:
            message = f"There is no payment {options['payment']}."
            raise CommandError(message)
        if payment.method == PaymentMethod.CARD:
            message = "A card's payment is refunded by Stripe: do it in the console's staff area."
            raise CommandError(message)
        try:
            with organization_scope(payment.organization_id):
                refund = refund_payment(
                    payment_id=payment.pk,
                    amount_minor=minor_amount(options["amount"], payment.currency),
                    external_id=options["id"],
                    by=options["by"] or getpass.getuser(),
                    reason=options["reason"],
                    is_goodwill=options["goodwill"],
                )
        except AppError as error:
            raise CommandError(error.detail) from error
        except ValueError as error:
            raise CommandError(str(error)) from error
        amount = readable_amount(refund.amount_minor, payment.currency)
        self.stdout.write(f"{refund.pk}: {amount} of {payment.pk} is given back.")
