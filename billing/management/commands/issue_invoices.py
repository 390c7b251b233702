"""`manage.py issue_invoices --month YYYY-MM`: the invoices of a month, each once."""

from __future__ import annotations

import getpass
from collections.abc import Collection
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.models.invoice import REASON_CHARS_MAX
from billing.models.receivables import ENTERED_BY_CHARS_MAX
from billing.money import readable_amount
from billing.parties import TaxUnknown
from billing.periods import parse_month
from billing.services.issuing import IssueReport, issue_month
from console.base.common.errors import AppError
from console.base.common.management.arguments import line_of

INTERRUPTED = 130
NAMED_MAX = 10


class Command(BaseCommand):
    """Issues the invoices of a month. Interrupted and run again, it continues where it was."""

    help = (
        "Issue the invoices of a month, zero ones too. Each organization gets one, however often."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the month, and the options for one organization, early closing and drafts."""
        parser.add_argument("--month", required=True, help="YYYY-MM")
        parser.add_argument("--organization", help="only this one (org_…); after a void one anew")
        parser.add_argument(
            "--close-early",
            metavar="REASON",
            default="",
            type=line_of(REASON_CHARS_MAX),
            help="invoice a month that is open or incomplete; invoices show the reason",
        )
        parser.add_argument(
            "--by",
            default="",
            type=line_of(ENTERED_BY_CHARS_MAX),
            help="who decides (default: the system's user)",
        )
        parser.add_argument(
            "--draft", action="store_true", help="write drafts without numbers, to look at"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as Django has it)
        """Issues the invoices, and prints the progress.

        Raises `CommandError` where organizations are left out.
        """
        try:
            month = parse_month(options["month"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        try:
            report = self._issue_month(month, options)
        except (AppError, TaxUnknown) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            message = "Interrupted. What is issued stays; run it again for the rest."
            raise CommandError(message, returncode=INTERRUPTED) from error
        self._show_result(month, report, draft=options["draft"])

    def _issue_month(self, month: date, options: dict[str, Any]) -> IssueReport:
        return issue_month(
            month=month,
            by=options["by"] or getpass.getuser(),
            organization_id=options["organization"],
            close_early=options["close_early"],
            draft=options["draft"],
            on_batch=self._show_progress,
        )

    def _show_progress(self, report: IssueReport, of: int) -> None:
        number = report.last[-1].number if report.last else ""
        done = report.issued + report.already + len(report.failed)
        self.stdout.write(f"{done} of {of} organizations {number}".rstrip())

    def _show_result(self, month: date, report: IssueReport, *, draft: bool) -> None:
        currency = report.last[0].currency if report.last else ""
        total = readable_amount(report.total_minor, currency) if currency else "nothing"
        what = "drafts" if draft else "invoices"
        self.stdout.write(
            f"{month:%Y-%m}: {report.issued} {what} over {total}; "
            f"{report.already} organizations had theirs."
        )
        self._report_left_out(report)

    def _report_left_out(self, report: IssueReport) -> None:
        """Prints one line for each organization without an invoice, with the reason.

        Raises `CommandError` where there are any.
        """
        for owner, hours in sorted(report.left_out.items()):
            self.stderr.write(f"{owner} is left out: {hours} hours of its usage are incomplete")
        for owner, reason in sorted(report.failed.items()):
            self.stderr.write(f"{owner} is left out: {reason}")
        parts = []
        if report.left_out:
            parts.append(
                f"{len(report.left_out)} organizations are left out, as hours of their usage are "
                f"incomplete: {_first_ids(report.left_out)}. Run it again later, or with "
                "--close-early."
            )
        if report.failed:
            parts.append(
                f"{len(report.failed)} organizations are left out, as their invoices cannot be "
                f"made: {_first_ids(report.failed)}. Run it again once the reasons are removed."
            )
        if parts:
            raise CommandError(" ".join(parts))


def _first_ids(organizations: Collection[str]) -> str:
    """The first `NAMED_MAX` ids in order, and how many more there are."""
    more = len(organizations) - NAMED_MAX
    shown = ", ".join(sorted(organizations)[:NAMED_MAX])
    return f"{shown} and {more} more" if more > 0 else shown
