"""Issues the invoices of a month, organization after organization, in batches of their own.

Issued invoices stay issued: a run that was interrupted continues where it was, and running it twice
is the same as once. The quantities are read once, from the published roll-ups; the ids of these are
kept with the invoices (`UsageBasis`).

An organization whose invoice cannot be made is left out, with the reason, which is kept until it
has its invoice (`missing.py`). Where a draft cannot be made, the batch goes on without it. A batch
that PostgreSQL refuses is rolled back and issued again in halves, down to the organization that it
fails for, so the invoices of the others are issued in few transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from billing.allowances.services import (
    Allowance,
    MonthAllowances,
    begin_trials,
    fix_allowances,
    invoiced_allowances,
)
from billing.budgets.caps import budget_caps
from billing.budgets.rules import most_billed
from billing.catalog import Catalog
from billing.choices import InvoiceKind, InvoiceState, MissingKind
from billing.drafts import Draft, cap_line, usage_lines
from billing.errors import MonthOpen, NumbersDiverged, UnknownOrganization, UsageChanged
from billing.models import BillingDetails, BudgetEvent, Invoice, PriceVersion, UsageBasis
from billing.parties import Party, TaxUnknown, tax_between
from billing.periods import closes_at, next_month, starts_at
from billing.rating import rate_totals, spent_on
from billing.services import numbers
from billing.services.missing import forget_missing, note_missing
from billing.services.writing import Written, issue_drafts, write_drafts
from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.errors import AppError, Unavailable
from console.base.common.ids import derived_id
from console.base.common.tenancy import system_scope
from console.base.common.transactions import task_transaction
from console.settings.sellers import parse_rates
from metering.models import JudgedHour, RollupPointer
from metering.services.totals import MonthCompleteness, billable_totals, month_completeness
from provisioning.models import Cluster

logger = logging.getLogger(__name__)

# Invoices per transaction. For each one the series is locked and a block of numbers reserved.
BATCH = 200
READS_MAX = 5
# The clusters of a closed organization have stopped by this time after closing.
STOPPED_AFTER = timedelta(hours=1)
DAYS_NAMED_MAX = 5


# The issued invoices of a batch, and organization → reason of those that were not issued.
Issued = tuple[list[Written], dict[str, str]]


@dataclass(frozen=True, slots=True)
class EarlyClose:
    """A person's decision to invoice a month that is open."""

    reason: str
    by: str


@dataclass(slots=True)
class IssueReport:
    """What a run did, and which organizations it left out."""

    issued: int = 0
    total_minor: int = 0
    # The number of organizations that had their invoice already.
    already: int = 0
    # Organizations with incomplete hours: id → how many.
    left_out: dict[str, int] = field(default_factory=dict)
    # Organizations whose invoice could not be made: id → reason.
    failed: dict[str, str] = field(default_factory=dict)
    last: list[Written] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Month:
    """The data that all invoices of a run share."""

    month: date
    catalog: Catalog
    basis: UsageBasis
    # organization → (cluster, meter) → quantity
    totals: Mapping[str, Mapping[tuple[str, str], int]]
    completeness: MonthCompleteness
    missing_hours: Mapping[str, int]
    early: EarlyClose | None
    seller: Party
    # Standard rates of VAT by country, in percent.
    vat_rates: Mapping[str, Decimal]

    def closed_early(self, organization_id: str) -> dict[str, Any] | None:
        """The decision to close early as an organization's invoice keeps it; None without one."""
        if self.early is None:
            return None
        return {
            "reason": self.early.reason,
            "by": self.early.by,
            "days_without_roll_up": [f"{day}" for day in self.completeness.missing_days],
            "days_with_newer_files": [f"{day}" for day in self.completeness.stale_days],
            "incomplete_hours": self.missing_hours.get(organization_id, 0),
        }


def issue_month(  # noqa: PLR0913 (what a person may ask for, by name)
    *,
    month: date,
    by: str,
    organization_id: str | None = None,
    among: Collection[str] | None = None,
    close_early: str = "",
    draft: bool = False,
    on_batch: Callable[[IssueReport, int], None] = lambda report, of: None,
) -> IssueReport:
    """Issues a month's invoices, zero ones too; or, with `draft`, only shows what they would say.

    `among`: a run over these organizations instead of all. `close_early` is the reason for
    invoicing an open month. `on_batch` is called after each batch with the report so far and the
    number of organizations. An organization whose invoice is void gets a new one only if
    `organization_id` names it.

    In a run over all organizations, one whose invoice cannot be made is listed in `failed` of the
    report, and the invoices of the others are issued. Who is left out is kept as a missing invoice,
    but for drafts, until it has one.

    Raises `MonthOpen`, `UnknownOrganization` and `UsageChanged`; `NumbersDiverged`, `Unavailable`,
    `OSError` and `OperationalError` for faults of the numbers, their lock, the store and the
    database, which concern all organizations; and for a named organization whatever its invoice
    fails with, such as `TaxUnknown`.
    """
    early = EarlyClose(close_early, by) if close_early else None
    with system_scope():
        shared = _read_month(month, organization_id, early)
        organizations = _organizations_to_invoice(month, organization_id, among)
        begin_trials(organizations)
    report = IssueReport()
    if early is None:
        missing = shared.missing_hours
        report.left_out = {owner: missing[owner] for owner in organizations if owner in missing}
        organizations = [owner for owner in organizations if owner not in report.left_out]
        if not draft:
            _note_incomplete(month, report.left_out)
    again = organization_id is not None

    run = frozenset(organizations)
    issue = partial(_issue_batch, shared, run=run, again=again, draft=draft, by=by)
    for batch in _split_batches(organizations):
        written, failed = issue(batch) if again else _issue_apart(batch, issue)
        if not draft:
            note_missing(month, MissingKind.IMPOSSIBLE, failed)
        report.issued += len(written)
        report.total_minor += sum(invoice.total_minor for invoice in written)
        report.already += len(batch) - len(written) - len(failed)
        report.failed |= failed
        report.last = written or report.last
        on_batch(report, len(organizations))
    return report


def _note_incomplete(month: date, hours: Mapping[str, int]) -> None:
    """Keeps who is left out for want of usage; who has an invoice lacks none."""
    with system_scope():
        issued = Invoice.objects.invoices().issued().filter(month=month)
        invoiced = set(
            issued.filter(organization_id__in=list(hours)).values_list("organization_id", flat=True)
        )
        forget_missing(month, invoiced)
    note_missing(
        month,
        MissingKind.USAGE_INCOMPLETE,
        {
            owner: f"{count} hours of its usage are incomplete"
            for owner, count in hours.items()
            if owner not in invoiced
        },
    )


def _read_month(month: date, organization_id: str | None, early: EarlyClose | None) -> _Month:
    clusters = metered_clusters(month, organization_id)
    completeness = month_completeness(month, organization_id, clusters=clusters)
    if now() < starts_at(month):
        message = f"{month:%Y-%m} has not begun."
        raise MonthOpen(message)
    if early is None:
        _refuse_open(month, completeness, now(), metered=bool(clusters))
    for _ in range(READS_MAX):
        runs = _published_runs(month)
        totals: dict[str, dict[tuple[str, str], int]] = {}
        for total in billable_totals(month, organization_id):
            totals.setdefault(total.organization_id, {})[total.cluster_id, total.meter] = (
                total.quantity
            )
        if runs == _published_runs(month):
            break
    else:
        raise UsageChanged
    return _Month(
        month=month,
        catalog=PriceVersion.objects.in_force(month).catalog(),
        basis=_usage_basis(month, runs),
        totals=totals,
        completeness=completeness,
        missing_hours=_missing_hours(completeness),
        early=early,
        seller=seller_party(),
        vat_rates=parse_rates(config().billing.vat_rates),
    )


def metered_clusters(month: date, organization_id: str | None) -> list[str]:
    """Ids of the clusters that existed in the month, for which there must be usage files."""
    clusters = Cluster.objects.filter(provisioned_at__lt=starts_at(next_month(month)))
    clusters = clusters.exclude(deleted_at__lt=starts_at(month))
    if organization_id is not None:
        clusters = clusters.for_organization(organization_id)
    return list(clusters.values_list("pk", flat=True))


def _refuse_open(
    month: date, completeness: MonthCompleteness, at: datetime, *, metered: bool
) -> None:
    """Raises `MonthOpen` where the month is open for all organizations.

    Incomplete hours do not count here: they hold up only the organizations that they belong to.
    Nor do days without a roll-up where no cluster was `metered`, since nothing was used.
    """
    if at < closes_at(month):
        message = f"{month:%Y-%m} can be invoiced from {closes_at(month):%Y-%m-%d %H:%M} UTC on."
        raise MonthOpen(message)
    for days, what in (
        (completeness.missing_days if metered else [], "have no published roll-up"),
        (completeness.stale_days, "have usage files that are newer than their roll-up"),
    ):
        if days:
            shown = ", ".join(f"{day}" for day in days[:DAYS_NAMED_MAX])
            more = f" and {len(days) - DAYS_NAMED_MAX} more" if len(days) > DAYS_NAMED_MAX else ""
            message = f"Days of {month:%Y-%m} {what}: {shown}{more}."
            raise MonthOpen(message)


def _missing_hours(completeness: MonthCompleteness) -> dict[str, int]:
    """Organization → the number of incomplete hours of its clusters."""
    clusters = {hour.cluster_id for hour in completeness.incomplete_hours}
    hours = JudgedHour.objects.filter(cluster_id__in=clusters)
    owners = dict(hours.values_list("cluster_id", "organization_id").distinct())
    owners |= dict(Cluster.objects.filter(pk__in=clusters).values_list("pk", "organization_id"))
    missing: dict[str, int] = {}
    for hour in completeness.incomplete_hours:
        owner = owners[hour.cluster_id]
        missing[owner] = missing.get(owner, 0) + 1
    return missing


def _published_runs(month: date) -> list[str]:
    pointers = RollupPointer.objects.filter(day__gte=month, day__lt=next_month(month))
    return list(pointers.order_by("day", "cell").values_list("run_id", flat=True))


def _usage_basis(month: date, runs: list[str]) -> UsageBasis:
    basis, _ = UsageBasis.objects.get_or_create(
        id=derived_id("ub", month, *runs), defaults={"month": month, "runs": runs}
    )
    return basis


def _organizations_to_invoice(
    month: date, organization_id: str | None, among: Collection[str] | None
) -> list[str]:
    organizations = Organization.objects.filter(created_at__lt=starts_at(next_month(month)))
    if organization_id is None:
        organizations = organizations.exclude(closed_at__lt=starts_at(month) - STOPPED_AFTER)
    else:
        organizations = organizations.for_organization(organization_id)
        if not organizations.exists():
            message = f"{organization_id} is no organization of {month:%Y-%m}."
            raise UnknownOrganization(message)
    if among is not None:
        organizations = organizations.filter(pk__in=list(among))
    return list(organizations.order_by("pk").values_list("pk", flat=True))


def _split_batches(ids: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(ids)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _issue_apart(organizations: Sequence[str], issue: Callable[[Sequence[str]], Issued]) -> Issued:
    """Issues a batch, and where it fails issues its halves. `issue` is `_issue_batch` with all
    arguments but the ids.

    Raises errors that every organization would fail with.
    """
    try:
        return issue(organizations)
    except Exception as error:
        if _is_of_all(error):
            raise
        if len(organizations) == 1:
            return [], {organizations[0]: _log_failure(organizations[0], error)}
    middle = len(organizations) // 2
    written, failed = _issue_apart(organizations[:middle], issue)
    more_written, more_failed = _issue_apart(organizations[middle:], issue)
    return written + more_written, failed | more_failed


def _is_of_all(error: Exception) -> bool:
    """Whether an error concerns the numbers, their lock or store, or the connection to PostgreSQL,
    and not just one organization.
    """
    if isinstance(error, InterfaceError | OperationalError):
        return not connection.is_usable()
    return isinstance(error, NumbersDiverged | Unavailable | OSError)


def _log_failure(organization_id: str, error: Exception) -> str:
    """Logs why an organization's invoice was not made, and returns the reason in one line."""
    expected = isinstance(error, AppError | TaxUnknown)
    # Only the first line: below it PostgreSQL quotes the statement.
    text = str(error).partition("\n")[0]
    reason = text if expected else f"{type(error).__name__}: {text}"
    logger.error(
        "invoice.failed",
        extra={"organization": organization_id, "reason": reason},
        exc_info=None if expected else error,
    )
    return reason


def _issue_batch(
    shared: _Month,
    organizations: Sequence[str],
    *,
    run: Collection[str],
    again: bool,
    draft: bool,
    by: str,
) -> Issued:
    """Issues the due invoices of some organizations, all or none but those that cannot be made.

    `run`: all organizations of the run, which share what their payers have free. `again`: a named
    organization, whose invoice fails with its error.
    """
    with task_transaction(), system_scope():
        at = now()
        series = numbers.lock_series(numbers.series_of(InvoiceKind.INVOICE, at))
        revisions = _next_revisions(shared.month, organizations, again=again)
        allowances = invoiced_allowances(
            shared.month, revisions, shared.catalog, shared.totals, run=run
        )
        drafts, failed = _make_drafts(shared, revisions, allowances, apart=not again)
        stale = Invoice.objects.invoices().filter(state=InvoiceState.DRAFT, month=shared.month)
        stale = stale.filter(organization_id__in=list(revisions))
        if draft:
            stale.delete()
            return write_drafts(drafts), failed
        written = issue_drafts(drafts, series=series, at=at, by=by, stale=stale)
        fix_allowances(allowances, {draft.organization_id: draft.revision for draft in drafts})
        forget_missing(shared.month, [owner for owner in organizations if owner not in failed])
    return written, failed


def _next_revisions(month: date, organizations: Collection[str], *, again: bool) -> dict[str, int]:
    """Organization → the revision to issue. Organizations that have their invoice are left out."""
    revisions = dict.fromkeys(organizations, 1)
    issued = Invoice.objects.invoices().issued()
    issued = issued.filter(month=month, organization_id__in=organizations).order_by("revision")
    void = set(issued.exclude(credit_note=None).values_list("pk", flat=True)) if again else set()
    for pk, owner, revision in issued.values_list("pk", "organization_id", "revision"):
        if pk in void:
            revisions[owner] = revision + 1
        else:
            revisions.pop(owner, None)
    return revisions


def _make_drafts(
    shared: _Month, revisions: Mapping[str, int], allowances: MonthAllowances, *, apart: bool
) -> tuple[list[Draft], dict[str, str]]:
    """The drafts, and with `apart` the reasons of the organizations that none can be made for."""
    owners = Organization.objects.in_bulk(list(revisions))
    details = BillingDetails.objects.in_bulk(list(revisions))
    clusters = Cluster.objects.filter(organization_id__in=list(revisions))
    names = dict(clusters.values_list("pk", "name"))
    budgeted = set(
        BudgetEvent.objects.filter(organization_id__in=list(revisions)).values_list(
            "organization_id", flat=True
        )
    )
    drafts, failed = [], {}
    for owner, revision in revisions.items():
        customer = customer_of(owners[owner], details.get(owner))
        try:
            allowance = allowances.of(owner)
            draft = _make_draft(
                shared, owner, customer, names, allowance, budgeted=owner in budgeted
            )
        except (DatabaseError, InterfaceError):
            # The transaction can do no more: the batch is issued again in halves.
            raise
        except Exception as error:
            if not apart:
                raise
            failed[owner] = _log_failure(owner, error)
        else:
            drafts.append(replace(draft, revision=revision))
    return drafts, failed


def _make_draft(
    shared: _Month,
    owner: str,
    customer: Party,
    names: Mapping[str, str],
    allowance: Allowance | None,
    *,
    budgeted: bool,
) -> Draft:
    """The draft of an organization's first invoice of the month; `budgeted`: it has budgets."""
    free = None if allowance is None else allowance.free
    rated = rate_totals(shared.totals.get(owner, {}), shared.catalog, shared.month, free)
    lines = usage_lines(rated, names)
    caps = budget_caps(owner, shared.month) if lines and budgeted else []
    cap = most_billed(caps, kept_minor=spent_on(rated).kept_minor)
    return Draft(
        organization_id=owner,
        kind=InvoiceKind.INVOICE.value,
        month=shared.month,
        revision=1,
        price_version=shared.catalog.version,
        basis_id=shared.basis.pk,
        currency=shared.catalog.currency,
        seller=shared.seller,
        customer=customer,
        tax=tax_between(shared.seller, customer, shared.vat_rates),
        lines=(*lines, *cap_line(lines, cap)),
        cap_minor=cap,
        closed_early=shared.closed_early(owner),
        allowance=None if allowance is None else allowance.as_json(),
    )


def seller_party() -> Party:
    """The party that sends the invoices, from the settings `billing.seller_*`."""
    settings = config().billing
    return Party(
        name=settings.seller_name,
        address=settings.seller_address,
        country=settings.seller_country.upper(),
        vat_id=settings.seller_vat_id,
        registration=settings.seller_registration,
        email=settings.seller_email,
    )


def customer_of(organization: Organization, details: BillingDetails | None) -> Party:
    """The party that an organization's invoices are addressed to."""
    if details is None:
        return Party(name=organization.name)
    return Party(
        name=details.legal_name or organization.name,
        address=tuple(details.address),
        country=details.country,
        vat_id=details.vat_id,
    )
