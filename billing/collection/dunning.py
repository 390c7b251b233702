"""What follows from an unpaid invoice: mails, suspension, sleep, deletion; and how it is lifted.

`calendar.py` decides. Here its decisions are taken with the organization locked, which payments
lock too: so nothing is taken against who has paid, and what was taken is undone in the transaction
that enters the payment.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from billing.choices import DunningStage, FailureKind, NoticeKind, ReceivableState
from billing.collection import calendar
from billing.collection.calendar import ORDER, Announcement, Move
from billing.collection.notices import note_notice, suspension_reason
from billing.models import Dunning, Receivable, UnpaidInvoice
from billing.receivables.event import lock_organizations
from billing.receivables.services import is_collected
from console.base.accounts.choices import AccountStatus, TrafficLimitKind, TrafficLimitSource
from console.base.accounts.services import (
    forfeit_clusters,
    redeem_clusters,
    set_account_status,
    set_traffic_limit,
)
from console.base.common.actor import system_actor
from console.base.common.audit import change_of, record_audit
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope, system_scope

logger = logging.getLogger(__name__)

DAY = timedelta(days=1)
SWEPT_MAX = 500
# Of these no charge failed: what is owed was not paid.
OVERDUE = frozenset({FailureKind.OVERDUE, FailureKind.REOPENED})
REASONS = {
    AccountStatus.SUSPENDED: "An invoice has been unpaid for a month.",
    AccountStatus.ACTIVE: "Everything that was overdue is paid.",
}


@dataclass(frozen=True, slots=True)
class Following:
    """What happens next to an organization that has not paid.

    `stage`: the step that follows, and `at` when; None where none does. `tries_at`: when the card
    is charged again; None where it is not.
    """

    stage: DunningStage | None = None
    at: datetime | None = None
    tries_at: datetime | None = None


def note_failure(
    *,
    organization_id: str,
    invoice_ids: Sequence[str],
    failure: FailureKind,
    since: datetime | None = None,
) -> None:
    """Writes down that invoices could not be charged, or did not come in, and what follows.

    Of those that were paid meanwhile nothing is written. In the caller's scope and transaction,
    with the organization locked. `since`: when they were due, if that is not now.
    """
    at = now()
    rows = Receivable.objects.open().filter(pk__in=list(invoice_ids))
    owed = set(rows.values_list("pk", flat=True))
    if not owed:
        return
    for invoice_id in sorted(owed):
        row, _ = UnpaidInvoice.objects.get_or_create(
            invoice_id=invoice_id,
            defaults={"organization_id": organization_id, "failure": failure.value},
        )
        if row.ended_at is not None:
            row.ended_at = row.since = None
        row.failures += 1
        row.failure = failure.value
        if failure is FailureKind.REFUSED:
            row.next_try_at = at + DAY
        elif failure is FailureKind.REOPENED:
            row.since, row.next_try_at = row.since or since or at, None
        else:
            row.since = row.since or since or at
            row.next_try_at = calendar.next_retry(row.since, at)
        row.save()
    if failure is FailureKind.REFUSED:
        logger.error(
            "collection.refused",
            extra={"organization": organization_id, "invoices": sorted(owed)},
        )
        return
    kind = NoticeKind.OVERDUE if failure in OVERDUE else NoticeKind.PAYMENT_FAILED
    note_notice(organization_id=organization_id, kind=kind, failure=failure.value)
    _evaluate(organization_id)


def follow_receivables(*, organization_id: str, **_: object) -> None:
    """Lifts at once what an organization paid for. Runs in the transaction of the payment."""
    if not is_collected():
        return
    unpaid = UnpaidInvoice.objects.filter(organization_id=organization_id, ended_at=None)
    ended = unpaid.exclude(invoice__receivable__state=ReceivableState.OPEN)
    if ended.update(ended_at=now(), next_try_at=None):
        lock_organizations([organization_id])
        _evaluate(organization_id)


def evaluate_dunning(*, organization_id: str) -> Dunning:
    """Does what the calendar has for an organization now. Repeating it changes nothing."""
    with organization_scope(organization_id):
        lock_organizations([organization_id])
        return _evaluate(organization_id)


def sweep_dunning() -> int:
    """Evaluates every organization whose calendar is due; returns how many."""
    with system_scope():
        due = Dunning.objects.filter(check_at__lte=now()).order_by("check_at")
        organizations = list(due.values_list("organization_id", flat=True)[:SWEPT_MAX])
    for organization_id in organizations:
        try:
            with transaction.atomic():
                evaluate_dunning(organization_id=organization_id)
        except Exception:
            # One organization must not keep the others from their calendars.
            logger.exception("dunning.failed", extra={"organization": organization_id})
    return len(organizations)


def what_follows(dunning: Dunning | None) -> Following:
    """What happens next, and when, in the caller's scope."""
    if dunning is None or dunning.since is None:
        return Following()
    unpaid = UnpaidInvoice.objects.filter(
        organization_id=dunning.organization_id, ended_at=None, next_try_at__isnull=False
    )
    tries_at = calendar.oldest(unpaid.values_list("next_try_at", flat=True))
    step = calendar.next_step(DunningStage(dunning.stage))
    if step is None:
        return Following(tries_at=tries_at)
    announced = _announcement(dunning)
    at = max(dunning.since + step.after, now() + step.notice)
    if announced is not None and announced.stage is step.stage:
        at = announced.acts_at
    return Following(step.stage, at, tries_at)


def _evaluate(organization_id: str) -> Dunning:
    """Decides and acts, in the caller's scope, with the organization locked."""
    at = now()
    dunning, _ = Dunning.objects.select_related("announcement").get_or_create(
        organization_id=organization_id
    )
    dunning.since = _unpaid_since(organization_id)
    move = calendar.next_move(
        stage=DunningStage(dunning.stage),
        since=dunning.since,
        announced=_announcement(dunning),
        at=at,
    )
    before = DunningStage(dunning.stage)
    if move.stage is not before:
        _enter_stage(dunning, before, move.stage)
    _announce(dunning, move)
    # Once a day in any case, as the collector may be another one by then.
    daily = at + DAY
    is_paid = move.stage is DunningStage.PAID
    dunning.check_at = None if is_paid else min(move.look_at or daily, daily)
    dunning.updated_at = at
    dunning.save()
    return dunning


def _unpaid_since(organization_id: str) -> datetime | None:
    if not is_collected():
        return None
    rows = UnpaidInvoice.objects.filter(organization_id=organization_id, ended_at=None)
    return calendar.oldest(rows.values_list("since", flat=True))


def _announcement(dunning: Dunning) -> Announcement | None:
    notice = dunning.announcement
    if notice is None or notice.acts_at is None:
        return None
    return Announcement(DunningStage(notice.stage), notice.acts_at, notice.sent_at is not None)


def _announce(dunning: Dunning, move: Move) -> None:
    if move.announce is not None:
        step, acts_at = move.announce
        dunning.announcement = note_notice(
            organization_id=dunning.organization_id,
            kind=NoticeKind.ANNOUNCED,
            stage=step.stage.value,
            acts_at=acts_at,
        )
    elif move.stage is DunningStage.PAID:
        dunning.announcement = None


def _enter_stage(dunning: Dunning, before: DunningStage, after: DunningStage) -> None:
    """Takes the step to a stage, or undoes the steps behind it, and has a mail say so."""
    organization_id = dunning.organization_id
    dunning.stage = after.value
    record_audit(
        actor=system_actor(organization_id),
        action="dunning.change",
        target_type="organization",
        target_id=organization_id,
        detail={"stage": change_of(before.value, after.value)},
    )
    _limit_traffic(organization_id, is_refused=_reaches(after, DunningStage.SUSPENDED))
    if _reaches(after, DunningStage.ASLEEP):
        if not dunning.put_to_sleep:
            dunning.put_to_sleep = _set_status(organization_id, AccountStatus.SUSPENDED)
    elif dunning.put_to_sleep:
        _set_status(organization_id, AccountStatus.ACTIVE)
        dunning.put_to_sleep = False
    if after is DunningStage.DELETED:
        forfeit_clusters(organization_id=organization_id, reason="Invoices are unpaid.")
    elif before is DunningStage.DELETED:
        redeem_clusters(organization_id=organization_id, reason="A payment came in.")
    if after is not DunningStage.UNPAID or before is not DunningStage.PAID:
        is_stricter = ORDER.index(after) > ORDER.index(before)
        note_notice(
            organization_id=organization_id,
            kind=NoticeKind.ACTED if is_stricter else NoticeKind.LIFTED,
            stage=after.value if is_stricter else before.value,
        )


def _reaches(stage: DunningStage, least: DunningStage) -> bool:
    return ORDER.index(stage) >= ORDER.index(least)


def _limit_traffic(organization_id: str, *, is_refused: bool) -> None:
    set_traffic_limit(
        organization_id=organization_id,
        source=TrafficLimitSource.UNPAID,
        kind=TrafficLimitKind.REFUSE if is_refused else None,
        reason=suspension_reason() if is_refused else "",
    )


def _set_status(organization_id: str, status: AccountStatus) -> bool:
    return set_account_status(
        organization_id=organization_id, status=status, reason=REASONS[status]
    )
