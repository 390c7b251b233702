"""Texts about budgets: the reason that brokers return to producers, and the mails."""

from __future__ import annotations

from datetime import date

from billing.choices import BudgetAction, BudgetEventKind
from billing.mails import send_mail
from billing.models import Budget, BudgetEvent
from billing.money import readable_amount
from billing.periods import next_month
from console.base.accounts.services import billing_addresses
from console.base.common.conf import config
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "billing.send_budget_mail"
SUSPENDED = """\
The budget "{name}" of {amount} for {month} is used up: {spent} so far.

All clusters of your organization refuse to take records now. Fetching them goes on, and nothing is
lost: what is stored stays. Nothing beyond the budget is billed.

Clusters take records again as soon as the budget is raised, set to notify only, or removed, and in
any case on {turns} (UTC):

{link}
"""
REACHED = """\
{spent} is spent of the budget "{name}" of {amount} for {month}: {threshold} % of it is reached.

{consequence}

{link}
"""
CONSEQUENCES = {
    BudgetAction.NOTIFY.value: "It only notifies: clusters go on when it is used up.",
    BudgetAction.SUSPEND.value: "Once it is used up, your clusters refuse to take records.",
}


def suspension_reason(budget: Budget) -> str:
    """The reason that brokers and the console show to producers: which budget, and what to do."""
    amount = readable_amount(budget.amount_minor, budget.currency)
    return (
        f'Produce is suspended: the budget "{budget.name}" of '
        f"{amount} for {month_name(budget.month)} is used up. Raise or remove it at "
        f"{_budgets_link()}, or wait until {_day_text(next_month(budget.month))} (UTC). "
        "Fetching goes on."
    )


def enqueue_mail(event: BudgetEvent) -> None:
    """Has a worker send an event's mail once the surrounding transaction has committed."""
    enqueue_task(
        task=TASK,
        organization_id=event.organization_id,
        arguments={"organization_id": event.organization_id, "event_id": event.pk},
    )


def send_budget_mail(*, organization_id: str, event_id: str) -> None:
    """Sends the mail of an event to the members who look after money; nothing if there are none,
    or no such event of the organization.

    A repeated one has the same Message-ID, by which mailboxes know it.
    """
    with organization_scope(organization_id):
        rows = BudgetEvent.objects.filter(organization_id=organization_id, pk=event_id)
        event = rows.select_related("budget").first()
        addresses = billing_addresses(organization_id=organization_id)
    if event is None or not addresses:
        return
    subject, text = mail_text(event)
    send_mail(subject=subject, text=text, to=addresses, key=event.pk)


def mail_text(event: BudgetEvent) -> tuple[str, str]:
    """Subject and text of an event's mail."""
    budget = event.budget
    facts = {
        "name": budget.name,
        "amount": readable_amount(event.amount_minor, budget.currency),
        "spent": readable_amount(event.spent_minor, budget.currency),
        "month": month_name(event.month),
        "turns": _day_text(next_month(event.month)),
        "threshold": event.threshold,
        "consequence": CONSEQUENCES[event.action],
        "link": _budgets_link(),
    }
    if event.kind == BudgetEventKind.SUSPENDED:
        return f'Produce is suspended: budget "{budget.name}" is used up', SUSPENDED.format(**facts)
    return f'Budget "{budget.name}": {facts["threshold"]} % reached', REACHED.format(**facts)


def month_name(month: date) -> str:
    """A month as `November 2026`."""
    return f"{month:%B %Y}"


def _day_text(day: date) -> str:
    return f"{day.day} {month_name(day)}"


def _budgets_link() -> str:
    return f"{config().web.public_url}/usage/budgets"
