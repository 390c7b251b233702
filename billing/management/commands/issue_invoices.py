"""`manage.py issue_invoices --month YYYY-MM`: the invoices of a month, each once."""

from __future__ import annotations

import getpass
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.money import readable
from billing.parties import TaxUnknown
from billing.periods import parse_month
from billing.services.issuing import IssueReport, issue_month
from console.common.errors import AppError

INTERRUPTED = 130
NAMED_MAX = 10


class Command(BaseCommand):
    """May be interrupted, and run again: it goes on where it was."""

    help = (
        "Issue the invoices of a month, zero ones too. Each organisation gets one, however often."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which month, and whether it is closed before its time."""
        parser.add_argument("--month", required=True, help="YYYY-MM")
        parser.add_argument("--organization", help="only this one (org_…); after a void one anew")
        parser.add_argument(
            "--close-early",
            metavar="REASON",
            default="",
            help="invoice a month that is open or incomplete; invoices show the reason",
        )
        parser.add_argument("--by", default="", help="who decides (default: the system's user)")
        parser.add_argument(
            "--draft", action="store_true", help="write drafts without numbers, to look at"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Issues, and says how far it is."""
        del args
        try:
            month = parse_month(options["month"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        try:
            report = self._issue(month, options)
        except (AppError, TaxUnknown) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            message = "Interrupted. What is issued stays; run it again for the rest."
            raise CommandError(message, returncode=INTERRUPTED) from error
        self._conclude(month, report, draft=options["draft"])

    def _issue(self, month: date, options: dict[str, Any]) -> IssueReport:
        return issue_month(
            month=month,
            by=options["by"] or getpass.getuser(),
            organization_id=options["organization"],
            close_early=options["close_early"],
            draft=options["draft"],
            on_batch=self._show,
        )

    def _show(self, report: IssueReport, of: int) -> None:
        number = report.last[-1].number if report.last else ""
        done = report.issued + report.already
        self.stdout.write(f"{done} of {of} organisations {number}".rstrip())

    def _conclude(self, month: date, report: IssueReport, *, draft: bool) -> None:
        currency = report.last[0].currency if report.last else ""
        total = readable(report.total_minor, currency) if currency else "nothing"
        what = "drafts" if draft else "invoices"
        self.stdout.write(
            f"{month:%Y-%m}: {report.issued} {what} over {total}; "
            f"{report.already} organisations had theirs."
        )
        if report.left_out:
            named = ", ".join(
                f"{owner} ({hours} h)"
                for owner, hours in sorted(report.left_out.items())[:NAMED_MAX]
            )
            message = (
                f"{len(report.left_out)} organisations are left out, as hours of their usage are "
                f"incomplete: {named}. Run it again later, or with --close-early."
            )
            raise CommandError(message)
