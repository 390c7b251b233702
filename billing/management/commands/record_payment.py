"""`manage.py record_payment REFERENCE AMOUNT --id ID`: enters money that came in."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.choices import PaymentMethod
from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX, EXTERNAL_ID_CHARS_MAX
from billing.money import minor_amount, readable_amount
from billing.periods import parse_day, require_past
from billing.receivables.services import find_receivable, record_payment
from console.base.common.clock import now
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of
from console.base.common.tenancy import organization_scope, system_scope


class Command(BaseCommand):
    """Enters a payment for an invoice; what is left pays the oldest ones, or is credit."""

    help = "Enter a payment that came in, such as a bank transfer."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds what a bank statement says of a payment."""
        parser.add_argument("reference", help="of the transfer, or the invoice's number or id")
        parser.add_argument("amount", help="in major units, such as 12.50")
        parser.add_argument(
            "--id",
            required=True,
            type=line_of(EXTERNAL_ID_CHARS_MAX),
            help="the bank's id of the payment; entered twice it counts once",
        )
        parser.add_argument("--on", default="", help="when it came in: YYYY-MM-DD (default: today)")
        parser.add_argument(
            "--method",
            choices=[PaymentMethod.TRANSFER.value, PaymentMethod.OTHER.value],
            default=PaymentMethod.TRANSFER.value,
        )
        parser.add_argument("--note", default="", type=line_of(REASON_CHARS_MAX))
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who enters it (default: the system's user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Enters the payment. Raises `CommandError` with the reason where it cannot."""
        try:
            at = now()
            received_at = require_past(parse_day(options["on"]), at) if options["on"] else at
            with system_scope():
                owed = find_receivable(options["reference"])
            number = owed.invoice.number
            amount_minor = minor_amount(options["amount"], owed.currency)
            with organization_scope(owed.organization_id):
                payment = record_payment(
                    organization_id=owed.organization_id,
                    method=options["method"],
                    amount_minor=amount_minor,
                    currency=owed.currency,
                    external_id=options["id"],
                    received_at=received_at,
                    by=options["by"] or getpass.getuser(),
                    invoice_ids=[owed.pk],
                    note=options["note"],
                )
                owed.refresh_from_db()
        except AppError as error:
            raise CommandError(error.detail) from error
        except ValueError as error:
            raise CommandError(str(error)) from error
        paid = readable_amount(payment.amount_minor, payment.currency)
        left = readable_amount(owed.open_minor, owed.currency)
        credit = readable_amount(payment.unapplied_minor, payment.currency)
        self.stdout.write(
            f"{payment.pk}: {paid} of {owed.organization_id}. Of {number}, {left} is "
            f"open. {credit} of the payment is credit."
        )
