"""Mails about unpaid invoices. Each is noted with the change that it is about, and sent once.

The mail before a step says when the step is taken. It is taken that long after the mail was really
sent: a mail server that is away postpones it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from billing.choices import DunningStage, FailureKind, NoticeKind
from billing.collection.calendar import STEPS
from billing.collection.common import PAGE, SEND_NOTICE
from billing.mails import send_mail
from billing.models import (
    BillingDetails,
    DunningNotice,
    PaymentAttempt,
    PriceVersion,
    UnpaidInvoice,
)
from billing.money import readable_amount
from billing.periods import month_of
from console.base.accounts.services import billing_addresses
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import task_transaction

logger = logging.getLogger(__name__)

# How long a mail that failed waits before it is tried again.
MAIL_AGAIN = timedelta(minutes=10)
SWEPT_MAX = 100
INVOICES_NAMED_MAX = 10
STEP_TEXTS = {
    DunningStage.SUSPENDED.value: "your clusters refuse to take and to return records",
    DunningStage.ASLEEP.value: "your clusters are put to sleep, and no client reaches them",
    DunningStage.DELETED.value: (
        "your clusters are deleted; paying restores them for seven days more, then what they"
        " store is gone for good"
    ),
}
SUBJECTS = {
    DunningStage.SUSPENDED.value: "Your clusters refuse traffic",
    DunningStage.ASLEEP.value: "Your clusters sleep",
    DunningStage.DELETED.value: "Your clusters are deleted",
}
FAILURE_TEXTS = {
    FailureKind.DECLINED.value: "Your card was declined.",
    FailureKind.NEEDS_AUTHENTICATION.value: (
        "Your bank asks you to confirm the payment yourself. Pay in the console to do so."
    ),
    FailureKind.NO_PAYMENT_METHOD.value: "Your organization has no card that we could charge.",
    FailureKind.OVERDUE.value: "The bank transfer has not come in.",
    FailureKind.REOPENED.value: (
        "A payment was refunded, or taken back by its bank, so what it had paid is owed again. We"
        " do not charge your card for it by ourselves: please pay it in the console."
    ),
}
ENDING = """\
{invoices}
Pay here, and everything works again at once:

{link}
"""
FAILED = """\
{failure} We could not collect {amount}.

{next}

{ending}"""
REOPENED = """\
{failure} {amount} is unpaid.

{next}

{ending}"""
ANNOUNCED = """\
{amount} is still unpaid, since {since}.

If it is not paid, {step} on {day} (UTC).

{ending}"""
ACTED = """\
{amount} is still unpaid, since {since}. As announced, {step} from now on. Nothing that is stored
was removed{more}.

{ending}"""
DELETED = """\
{amount} is still unpaid, since {since}. As announced, your clusters were deleted. Pay
within seven days, and they are restored at once. Then what they store is gone for good: records,
topics, consumer groups and credentials.

Pay here:

{link}
"""
LIFTED = """\
Thank you: everything that was overdue is paid.{more}

{link}
"""
LIFTED_PARTLY = """\
Thank you: a payment came in. Clusters that were held up serve again.

{amount} is still unpaid, since {since}.

{ending}"""
ADVANCE_FAILED = """\
{failure} We could not collect {amount} in advance.

As your card is new here, it is charged in advance once what is used with it comes to {charged_at}.
What it pays is used for the next invoice. If nothing is paid before {limit} are used, your clusters
refuse to take and to return records.

Pay here, or give another card:

{link}
"""
LIMIT_REACHED = """\
What is used with your card has come to {limit}, and it has paid too little so far. Your clusters
refuse to take and to return records now. Nothing that is stored was removed, and storage goes on
being billed.

Pay in advance here, or give another card, and everything works again at once:

{link}
"""
DISPUTED = """\
Several payments of yours are disputed at the bank of their card, and one of them is not decided.
Your clusters refuse to take and to return records until it is. Nothing that is stored was removed,
and storage goes on being billed.

If a dispute is a mistake, ask your bank to end it. Your payments:

{link}
"""
AFTER_LIFTED = {
    DunningStage.SUSPENDED.value: " Your clusters take and return records again.",
    DunningStage.ASLEEP.value: " Your clusters wake as soon as a client connects.",
    DunningStage.DELETED.value: (
        " Clusters that were deleted less than seven days ago are restored, and wake as soon as a"
        " client connects. What others stored is gone. The page of clusters shows which are there."
    ),
}

OF_PAYERS = {
    NoticeKind.ADVANCE_FAILED: ADVANCE_FAILED,
    NoticeKind.LIMIT_REACHED: LIMIT_REACHED,
    NoticeKind.DISPUTED: DISPUTED,
}


def suspension_reason() -> str:
    """The reason that brokers and the console show to clients while an invoice is unpaid."""
    return (
        "Produce and fetch are refused: an invoice is unpaid. Pay it at"
        f" {_link()}; your clusters serve again at once."
    )


def note_notice(
    *,
    organization_id: str,
    kind: NoticeKind,
    stage: str = "",
    failure: str = "",
    acts_at: datetime | None = None,
) -> DunningNotice:
    """Notes, in the transaction of the change, a mail that a worker sends after it."""
    notice = DunningNotice.objects.create(
        organization_id=organization_id,
        kind=kind.value,
        stage=stage,
        failure=failure,
        acts_at=acts_at,
    )
    enqueue_task(
        task=SEND_NOTICE,
        organization_id=organization_id,
        arguments={"organization_id": organization_id, "notice_id": notice.pk},
    )
    return notice


def send_dunning_mail(*, organization_id: str, notice_id: str) -> bool:
    """Sends the mail of a notice that was not sent yet; returns whether it did.

    The sender holds a lock, so two senders at a time send one mail. Raises `OSError` where the mail
    server cannot be reached.
    """
    with task_transaction(), organization_scope(organization_id):
        if not locks.try_lock("dunning_notice", notice_id):
            return False
        rows = DunningNotice.objects.filter(organization_id=organization_id, pk=notice_id)
        notice = rows.filter(sent_at=None).first()
        if notice is None:
            return False
        if notice.acts_at is not None:
            notice.acts_at = max(notice.acts_at, now() + _notice_of(notice.stage))
        addresses = _addresses_of(organization_id)
        if addresses:
            subject, text = mail_text(notice)
            send_mail(subject=subject, text=text, to=addresses, key=notice.pk)
        notice.sent_at, notice.recipients = now(), len(addresses)
        notice.save(update_fields=["sent_at", "recipients", "acts_at"])
    return bool(addresses)


def sweep_notices() -> int:
    """Sends the mails that failed or were lost, for a while; returns how many."""
    at = now()
    with system_scope():
        due = DunningNotice.objects.filter(sent_at=None, created_at__lte=at - MAIL_AGAIN)
        due = due.exclude(failed_at__gt=at - MAIL_AGAIN).order_by("created_at", "pk")
        notices = list(due.values_list("organization_id", "pk")[:SWEPT_MAX])
    sent = 0
    for organization_id, notice_id in notices:
        try:
            sent += send_dunning_mail(organization_id=organization_id, notice_id=notice_id)
        except Exception:
            # Every kind of error counts: an impossible address, for example, raises `ValueError`.
            logger.exception("The mail of %s could not be sent", notice_id)
            with organization_scope(organization_id):
                ours = DunningNotice.objects.filter(organization_id=organization_id, pk=notice_id)
                ours.filter(sent_at=None).update(failed_at=now())
    return sent


def mail_text(notice: DunningNotice) -> tuple[str, str]:
    """Subject and text of a notice's mail, as it is sent now, in the organization's scope."""
    if notice.kind in OF_PAYERS:
        return _payer_text(notice)
    unpaid = list(
        UnpaidInvoice.objects.filter(organization_id=notice.organization_id, ended_at=None)
        .exclude(since=None)
        .select_related("invoice__receivable")
        .order_by("since", "pk")
    )
    amount = _amount_of(unpaid)
    facts = {
        "amount": amount,
        "since": _day_text(unpaid[0].since) if unpaid else "",
        "link": _link(),
        "ending": ENDING.format(invoices=_invoices_text(unpaid), link=_link()),
    }
    if notice.kind == NoticeKind.ANNOUNCED:
        day = _day_text(notice.acts_at)
        step = STEP_TEXTS[notice.stage]
        return f"{SUBJECTS[notice.stage]} on {day} unless {amount} is paid", ANNOUNCED.format(
            **facts, step=step, day=day
        )
    if notice.kind == NoticeKind.ACTED:
        return _acted_text(notice, facts)
    if notice.kind == NoticeKind.LIFTED:
        if unpaid:
            return "A payment came in, and your clusters serve again", LIFTED_PARTLY.format(**facts)
        more = AFTER_LIFTED.get(notice.stage, "")
        return "Everything is paid", LIFTED.format(**facts, more=more)
    follows = _follows_text(unpaid)
    subject = (
        f"{amount} is overdue"
        if notice.kind == NoticeKind.OVERDUE
        else f"{amount} could not be paid"
    )
    failure = FAILURE_TEXTS[notice.failure]
    template = REOPENED if notice.failure == FailureKind.REOPENED else FAILED
    return subject, template.format(**facts, failure=failure, next=follows)


def _payer_text(notice: DunningNotice) -> tuple[str, str]:
    """Subject and text of a mail about the card that pays, and no invoice."""
    currency = PriceVersion.objects.in_force(month_of(now())).currency
    limit_minor = config().billing.unproved_payer_limit_minor
    advances = PaymentAttempt.objects.filter(
        organization_id=notice.organization_id, first_invoice=None
    )
    newest = advances.order_by("-created_at", "-number").first()
    amount = readable_amount(newest.amount_minor if newest else 0, currency)
    text = OF_PAYERS[NoticeKind(notice.kind)].format(
        failure=FAILURE_TEXTS.get(notice.failure, ""),
        amount=amount,
        charged_at=readable_amount(limit_minor // 2, currency),
        limit=readable_amount(limit_minor, currency),
        link=_link(),
    )
    if notice.kind == NoticeKind.ADVANCE_FAILED:
        return f"{amount} could not be paid in advance", text
    return SUBJECTS[DunningStage.SUSPENDED], text


def _acted_text(notice: DunningNotice, facts: dict[str, str]) -> tuple[str, str]:
    if notice.stage == DunningStage.DELETED:
        return SUBJECTS[notice.stage], DELETED.format(**facts)
    asleep = notice.stage == DunningStage.ASLEEP
    more = "" if asleep else ", and storage goes on being billed"
    return SUBJECTS[notice.stage], ACTED.format(**facts, step=STEP_TEXTS[notice.stage], more=more)


def _follows_text(unpaid: list[UnpaidInvoice]) -> str:
    """What happens next to who does not pay: the next charge, and the first step."""
    since = next((row.since for row in unpaid if row.since is not None), None)
    tries = [row.next_try_at for row in unpaid if row.next_try_at is not None]
    lines = []
    has_card = all(row.failure != FailureKind.NO_PAYMENT_METHOD for row in unpaid)
    if tries and has_card:
        lines.append(f"We charge the card again on {_day_text(max(min(tries), now()))} (UTC).")
    elif tries:
        lines.append("A card that you add in the console is charged at once.")
    if since is not None:
        first = STEPS[0]
        day = _day_text(max(since + first.after, now() + first.notice))
        lines.append(f"If nothing is paid by {day} (UTC), {STEP_TEXTS[first.stage.value]}.")
    return "\n".join(lines)


def _amount_of(unpaid: list[UnpaidInvoice]) -> str:
    """What is open of these invoices, by currency."""
    sums: dict[str, int] = {}
    for row in unpaid:
        receivable = row.invoice.receivable
        sums[receivable.currency] = sums.get(receivable.currency, 0) + receivable.open_minor
    return " and ".join(readable_amount(total, currency) for currency, total in sums.items())


def _invoices_text(unpaid: list[UnpaidInvoice]) -> str:
    """The oldest of these invoices, as a mail lists them."""
    lines = []
    for row in unpaid[:INVOICES_NAMED_MAX]:
        receivable = row.invoice.receivable
        amount = readable_amount(receivable.open_minor, receivable.currency)
        lines.append(f"  {row.invoice.number} for {row.invoice.month:%B %Y}: {amount}\n")
    more = len(unpaid) - len(lines)
    return "".join([*lines, f"  and {more} more\n" if more else ""])


def _notice_of(stage: str) -> timedelta:
    return next(step.notice for step in STEPS if step.stage.value == stage)


def _addresses_of(organization_id: str) -> list[str]:
    details = BillingDetails.objects.filter(pk=organization_id).first()
    if details is not None and details.email:
        return [details.email]
    return billing_addresses(organization_id=organization_id)


def _day_text(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.day} {moment:%B %Y}"


def _link() -> str:
    return f"{config().web.public_url}{PAGE}"
