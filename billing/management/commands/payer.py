"""`manage.py payer`: which bank account pays for an organization, as an operator knows it; and
whether its card is trusted."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from billing.allowances.payers import (
    account_fingerprint,
    assign_payer,
    remove_payer,
    trust_payer,
)
from billing.choices import PayerKind
from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope


class Command(BaseCommand):
    """Names the account that pays; organizations with the same account share its allowance."""

    help = "Says which bank account pays for an organization, or that none does any more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the organization, and the account or `--remove`."""
        parser.add_argument("--organization", required=True, metavar="org_…")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--account", metavar="IBAN", help="it is kept as a hash only")
        what.add_argument("--remove", action="store_true", help="nobody pays from now on")
        what.add_argument(
            "--trust",
            metavar="REASON",
            help="debts, disputes and the limit before the first payment do not hold its card up",
        )
        what.add_argument("--distrust", metavar="REASON", help="they do again")

    def handle(self, *args: object, **options: object) -> None:
        """Writes it, and prints what holds. Raises `CommandError` for an unknown organization."""
        organization_id = str(options["organization"])
        with organization_scope(organization_id):
            known = Organization.objects.filter(pk=organization_id).exists()
        if not known:
            message = f"There is no organization {organization_id}."
            raise CommandError(message)
        for name in ("trust", "distrust"):
            if options[name]:
                self._trust(organization_id, str(options[name]), is_trusted=name == "trust")
                return
        with transaction.atomic():
            if options["remove"]:
                remove_payer(organization_id=organization_id)
                self.stdout.write(f"Nobody pays for {organization_id} from now on.")
                return
            payer = assign_payer(
                organization_id=organization_id,
                kind=PayerKind.ACCOUNT,
                fingerprint=account_fingerprint(str(options["account"])),
            )
        self.stdout.write(f"{payer.pk} pays for {organization_id}.")

    def _trust(self, organization_id: str, reason: str, *, is_trusted: bool) -> None:
        with transaction.atomic():
            payer = trust_payer(
                organization_id=organization_id, is_trusted=is_trusted, reason=reason
            )
        if payer is None:
            message = f"{organization_id} has no card."
            raise CommandError(message)
        self.stdout.write(f"{payer.pk} is {'' if is_trusted else 'not '}trusted.")
