"""`manage.py issue_invoices --month YYYY-MM`: the invoices of a month, each once."""

from __future__ import annotations

import getpass
from collections.abc import Collection
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.money import readable
from billing.parties import TaxUnknown
from billing.periods import parse_month
from billing.services.issuing import IssueReport, issue_month
from console.base.common.errors import AppError

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
        done = report.issued + report.already + len(report.failed)
        self.stdout.write(f"{done} of {of} organisations {number}".rstrip())

    def _conclude(self, month: date, report: IssueReport, *, draft: bool) -> None:
        currency = report.last[0].currency if report.last else ""
        total = readable(report.total_minor, currency) if currency else "nothing"
        what = "drafts" if draft else "invoices"
        self.stdout.write(
            f"{month:%Y-%m}: {report.issued} {what} over {total}; "
            f"{report.already} organisations had theirs."
        )
        self._tell_left_out(report)

    def _tell_left_out(self, report: IssueReport) -> None:
        """One line each, with the reason. Raises `CommandError` where there are any."""
        for owner, hours in sorted(report.left_out.items()):
            self.stderr.write(f"{owner} is left out: {hours} hours of its usage are incomplete")
        for owner, reason in sorted(report.failed.items()):
            self.stderr.write(f"{owner} is left out: {reason}")
        parts = []
        if report.left_out:
            parts.append(
                f"{len(report.left_out)} organisations are left out, as hours of their usage are "
                f"incomplete: {_named(report.left_out)}. Run it again later, or with --close-early."
            )
        if report.failed:
            parts.append(
                f"{len(report.failed)} organisations are left out, as their invoices cannot be "
                f"made: {_named(report.failed)}. Run it again once the reasons are removed."
            )
        if parts:
            raise CommandError(" ".join(parts))


def _named(organizations: Collection[str]) -> str:
    """The first of them, by id."""
    more = len(organizations) - NAMED_MAX
    named = ", ".join(sorted(organizations)[:NAMED_MAX])
    return f"{named} and {more} more" if more > 0 else named
