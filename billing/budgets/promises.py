"""Tells organizations that what a suspending budget does changes with the next month.

Until decision 0016 such a budget capped all of the bill and let fetch go on. Budgets that were set
under that promise keep it to the end of the month of the upgrade (`Budget.covers_all_until`). The
migration that marks them enqueues one mail for each organization.
"""

from __future__ import annotations

from billing.budgets.notices import budgets_link, day_text, month_name
from billing.choices import BudgetAction
from billing.mails import send_mail
from billing.models import Budget
from billing.money import readable_amount
from billing.periods import next_month
from console.base.accounts.services import billing_addresses
from console.base.common.mail_names import quoted_name
from console.base.common.tenancy import organization_scope

SUBJECT = "From {turns} on, suspending budgets stop fetching, too"
TEXT = """\
Your organization has budgets with the action "suspend":

{budgets}

For {month} nothing changes: once such a budget is used up, your clusters refuse to take records,
fetching goes on, and nothing beyond the budget is billed.

From {turns} (UTC) on, once it is used up:

- Your clusters refuse to take records and to give them out. Consumers stay in their groups and go
  on by themselves once traffic is allowed again.
- What is produced and fetched is billed up to what was left of the budget. What slips past is not.
- What is stored, and partitions, go on being billed, also beyond the budget. Deleting topics ends
  that.

If you would rather have traffic slowed down than refused, choose the action "throttle". A budget
that you change before {turns} does as above from the change on.

{link}
"""


def send_promise_mail(*, organization_id: str) -> None:
    """Sends the mail to the members who look after money; nothing if there are none, or no budget
    is left that was set under the old promise.

    A repeated one has the same Message-ID, by which mailboxes know it.
    """
    with organization_scope(organization_id):
        rows = Budget.objects.for_organization(organization_id).current()
        rows = rows.filter(action=BudgetAction.SUSPEND.value, covers_all_until__isnull=False)
        budgets = list(rows.order_by("created_at", "id"))
        addresses = billing_addresses(organization_id=organization_id)
    if not budgets or not addresses:
        return
    months = [budget.covers_all_until for budget in budgets if budget.covers_all_until is not None]
    last = max(months)
    listed = (
        f"- {quoted_name(budget.name)} of {readable_amount(budget.amount_minor, budget.currency)}"
        for budget in budgets
    )
    facts = {
        "budgets": "\n".join(listed),
        "month": month_name(last),
        "turns": day_text(next_month(last)),
        "link": budgets_link(),
    }
    send_mail(
        subject=SUBJECT.format(**facts),
        text=TEXT.format(**facts),
        to=addresses,
        key=f"budget-promise-{organization_id}",
    )
