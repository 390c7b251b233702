"""`manage.py write_off_invoice INVOICE --reason REASON`: gives up what is open of an invoice."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX
from billing.money import readable_amount
from billing.receivables.services import find_receivable, write_off
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of
from console.base.common.tenancy import organization_scope, system_scope


class Command(BaseCommand):
    """Makes an invoice uncollectible; a later payment for it takes that back."""

    help = "Write off what is open of an invoice."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the invoice and the reason."""
        parser.add_argument("invoice", help="its number, id or transfer reference")
        parser.add_argument(
            "--reason", required=True, type=line_of(REASON_CHARS_MAX), help="for the audit log"
        )
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who decides (default: the system's user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Writes it off. Raises `CommandError` with the reason where it cannot."""
        try:
            with system_scope():
                owed = find_receivable(options["invoice"])
            with organization_scope(owed.organization_id):
                written_off = write_off(
                    invoice_id=owed.pk,
                    reason=options["reason"],
                    by=options["by"] or getpass.getuser(),
                )
        except AppError as error:
            raise CommandError(error.detail) from error
        amount = readable_amount(written_off.written_off_minor, written_off.currency)
        self.stdout.write(f"{amount} of {owed.invoice.number} is written off.")
