"""`manage.py void_invoice INVOICE --reason REASON`: takes an issued invoice back."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX
from billing.money import readable_amount
from billing.services.voiding import void_invoice
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of


class Command(BaseCommand):
    """Issues a credit note; the invoice itself stays as it is."""

    help = "Take an issued invoice back by a credit note."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the invoice and the reason."""
        parser.add_argument("invoice", help="inv_…")
        parser.add_argument(
            "--reason",
            required=True,
            type=line_of(REASON_CHARS_MAX),
            help="printed on the credit note",
        )
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who decides (default: the system's user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Takes the invoice back. Raises `CommandError` with the reason where it cannot."""
        try:
            written = void_invoice(
                invoice_id=options["invoice"],
                reason=options["reason"],
                by=options["by"] or getpass.getuser(),
            )
        except AppError as error:
            raise CommandError(error.detail) from error
        amount = readable_amount(written.total_minor, written.currency)
        self.stdout.write(f"Credit note {written.number} over {amount}.")
