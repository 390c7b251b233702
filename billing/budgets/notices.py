"""Texts about budgets: the reason that clients are shown, and the mails."""

from __future__ import annotations

from datetime import date

from billing.budgets.rules import covers_all
from billing.choices import BudgetAction, BudgetEventKind
from billing.mails import send_mail
from billing.models import Budget, BudgetEvent
from billing.money import readable_amount
from billing.periods import next_month
from console.base.accounts.choices import TrafficLimitKind
from console.base.accounts.services import billing_addresses
from console.base.common.conf import config
from console.base.common.mail_names import quoted_name
from console.base.common.outbox import enqueue_task
from console.base.common.tenancy import organization_scope

TASK = "billing.send_budget_mail"
# Of a budget that covers all of the bill, as was promised until decision 0016.
PRODUCE_SUSPENDED = """\
The budget {name} of {amount} for {month} is used up: {spent} so far.

All clusters of your organization refuse to take records now. Fetching them goes on, and nothing is
lost: what is stored stays. Nothing beyond the budget is billed for {month}.

Clusters take records again as soon as the budget is raised, set to notify only, or removed, and in
any case on {turns} (UTC):

{link}
"""
SUSPENDED = """\
The budget {name} of {amount} for {month} is used up: {spent} so far.

All clusters of your organization refuse to take records and to give them out now. Consumers stay in
their groups, and nothing is lost: what is stored stays. Traffic that slips past is not billed.

What is stored, and partitions, go on being billed: {kept} of {month} so far. Topics that are not
needed can be deleted meanwhile.

Traffic goes on as soon as the budget is raised, set to another action, or removed, and in any case
on {turns} (UTC):

{link}
"""
THROTTLED = """\
The budget {name} of {amount} for {month} is used up: {spent} so far.

Each cluster of your organization now takes and gives out {rate} a second at most. Nothing is
refused, and nothing is lost. All that is produced, fetched and stored goes on being billed.

Traffic goes on at its full rate as soon as the budget is raised, set to another action, or removed,
and in any case on {turns} (UTC):

{link}
"""
REACHED = """\
{spent} is spent of the budget {name} of {amount} for {month}: {threshold} % of it is reached.

{consequence}

{link}
"""
SUBJECTS = {
    BudgetEventKind.SUSPENDED.value: "Produce and fetch are suspended: budget {name} is used up",
    BudgetEventKind.THROTTLED.value: "Traffic is slowed down: budget {name} is used up",
}
TEXTS = {
    BudgetEventKind.SUSPENDED.value: SUSPENDED,
    BudgetEventKind.THROTTLED.value: THROTTLED,
}
COVERS_ALL = "Once it is used up, your clusters refuse to take records."
CONSEQUENCES = {
    BudgetAction.NOTIFY.value: "It only notifies: clusters go on when it is used up.",
    BudgetAction.SUSPEND.value: "Once it is used up, your clusters refuse to take records and to "
    "give them out. What is stored goes on being billed.",
    BudgetAction.THROTTLE.value: "Once it is used up, each of your clusters takes and gives out "
    "{rate} a second at most. All of that is billed.",
}
EFFECTS = {
    TrafficLimitKind.REFUSE: "Produce and fetch are suspended",
    TrafficLimitKind.REFUSE_PRODUCE: "Produce is suspended, and fetching goes on",
    TrafficLimitKind.THROTTLE: "Each cluster takes and gives out {rate} a second at most",
}
KIB, MIB = 2**10, 2**20


def limit_reason(budget: Budget, kind: TrafficLimitKind) -> str:
    """The reason that brokers and the console show to clients: which budget, and what to do."""
    amount = readable_amount(budget.amount_minor, budget.currency)
    effect = EFFECTS[kind].format(rate=readable_rate(budget.throttle_bytes_per_s))
    return (
        f'{effect}: the budget "{budget.name}" of '
        f"{amount} for {month_name(budget.month)} is used up. Raise or remove it at "
        f"{budgets_link()}, or wait until {day_text(next_month(budget.month))} (UTC)."
    )


def readable_rate(bytes_per_s: int | None) -> str:
    """A number of bytes, such as that of a second, as `1 MiB`; empty for None."""
    if bytes_per_s is None:
        return ""
    unit, name = (MIB, "MiB") if bytes_per_s >= MIB else (KIB, "KiB")
    return f"{bytes_per_s / unit:.3g} {name}"


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
        "name": quoted_name(budget.name),
        "amount": readable_amount(event.amount_minor, budget.currency),
        "spent": readable_amount(event.spent_minor, budget.currency),
        "month": month_name(event.month),
        "kept": readable_amount(event.kept_minor or 0, budget.currency),
        "rate": readable_rate(event.throttle_bytes_per_s),
        "turns": day_text(next_month(event.month)),
        "threshold": event.threshold,
        "link": budgets_link(),
    }
    old_promise = covers_all(event.covers_all_until, event.month)
    if event.kind == BudgetEventKind.SUSPENDED and old_promise:
        subject = f"Produce is suspended: budget {facts['name']} is used up"
        return subject, PRODUCE_SUSPENDED.format(**facts)
    if event.kind in TEXTS:
        return SUBJECTS[event.kind].format(**facts), TEXTS[event.kind].format(**facts)
    of_suspending = old_promise and event.action == BudgetAction.SUSPEND
    consequence = COVERS_ALL if of_suspending else CONSEQUENCES[event.action]
    facts["consequence"] = consequence.format(**facts)
    return f"Budget {facts['name']}: {facts['threshold']} % reached", REACHED.format(**facts)


def month_name(month: date) -> str:
    """A month as `November 2026`."""
    return f"{month:%B %Y}"


def day_text(day: date) -> str:
    """A day as `1 December 2026`."""
    return f"{day.day} {month_name(day)}"


def budgets_link() -> str:
    """Where budgets are set."""
    return f"{config().web.public_url}/usage/budgets"
