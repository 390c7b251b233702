"""`manage.py grant_credit ORGANIZATION AMOUNT --reason REASON`: gives a customer credit."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models import PriceVersion
from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX, EXTERNAL_ID_CHARS_MAX
from billing.money import minor_amount, readable_amount
from billing.periods import month_of
from billing.receivables.services import grant_credit
from console.base.common.clock import now
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of
from console.base.common.tenancy import organization_scope


class Command(BaseCommand):
    """Grants credit in the currency of the prices; it pays open invoices, then the next ones."""

    help = "Grant an organization credit."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the organization, the amount and the reason."""
        parser.add_argument("organization", help="org_…")
        parser.add_argument("amount", help="in major units, such as 12.50")
        parser.add_argument(
            "--reason", required=True, type=line_of(REASON_CHARS_MAX), help="for the audit log"
        )
        parser.add_argument(
            "--id",
            default=None,
            type=line_of(EXTERNAL_ID_CHARS_MAX),
            help="a name of your own; granted twice it counts once",
        )
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who decides (default: the system's user)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Grants it. Raises `CommandError` with the reason where it cannot."""
        currency = PriceVersion.objects.in_force(month_of(now())).currency
        try:
            amount_minor = minor_amount(options["amount"], currency)
            with organization_scope(options["organization"]):
                credit = grant_credit(
                    organization_id=options["organization"],
                    amount_minor=amount_minor,
                    currency=currency,
                    reason=options["reason"],
                    by=options["by"] or getpass.getuser(),
                    external_id=options["id"],
                )
        except AppError as error:
            raise CommandError(error.detail) from error
        except ValueError as error:
            raise CommandError(str(error)) from error
        granted = readable_amount(credit.amount_minor, currency)
        left = readable_amount(credit.unapplied_minor, currency)
        self.stdout.write(f"{credit.pk}: {granted}, of which {left} is left for invoices to come.")
