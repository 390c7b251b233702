"""Budgets that were set under the promise of decision 0009: until when it holds, and the mail."""

from datetime import UTC, date, datetime, timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core import mail
from django.db import connection

from billing.budgets import evaluation
from billing.models import Budget
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import spend_cents
from tests.billing.budgets.test_budgets import limit, show, suspended
from tests.console.outbox import run_outbox

migration = import_module("billing.migrations.0011_budget_promises")
NOVEMBER = date(2026, 11, 1)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def old_budget(tenant, make_budget):
    """A budget as the migration leaves it."""

    def make(amount_minor, **fields):
        budget = make_budget(amount_minor, **fields)
        with organization_scope(tenant.id):
            Budget.objects.filter(pk=budget["id"]).update(covers_all_until=NOVEMBER)
        return budget

    return make


def announce():
    """What the migration does with rows that are there, and the mails."""
    with connection.schema_editor() as editor:
        migration.mark_acting(apps, editor)
    run_outbox()


def test_it_lets_fetching_go_on_until_the_month_ends(api, tenant, at, old_budget):
    budget = old_budget(100)
    spend_cents(tenant.id, 100)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    assert limit(api)["kind"] == "refuse_produce"
    assert suspended(api).startswith("Produce is suspended, and fetching goes on: the budget")
    assert show(api, budget)["covers_all_until"] == "2026-11"
    run_outbox()
    assert "Fetching them goes on" in mail.outbox[-1].body
    at(DECEMBER)
    evaluation.evaluate_budgets()
    assert limit(api) is None
    spend_cents(tenant.id, 100)
    at(DECEMBER + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    assert limit(api)["kind"] == "refuse"


def test_a_change_is_of_today(api, tenant, at, old_budget):
    spend_cents(tenant.id, 100)
    budget = old_budget(50)
    changed = api().patch(f"/budgets/{budget['id']}", {"amount_minor": 60}).json()
    assert changed["covers_all_until"] is None
    assert limit(api)["kind"] == "refuse"


def test_one_mail_goes_to_each_organization_that_has_one(
    api, tenant, other_tenant, at, old_budget, make_budget
):
    old_budget(5_000)
    old_budget(700, name="Small")
    gone = old_budget(9_900, name="Gone")
    api().delete(f"/budgets/{gone['id']}")
    api(other_tenant.key).post("/budgets", {"name": "x", "amount_minor": 1, "action": "notify"})
    run_outbox()
    mail.outbox.clear()
    announce()
    (message,) = mail.outbox
    assert message.to == ["owner@acme.example"]
    assert message.subject == "From 1 December 2026 on, suspending budgets stop fetching, too"
    assert '\n- "Team" of $50.00\n' in message.body
    assert '\n- "Small" of $7.00\n' in message.body
    assert "For November 2026 nothing changes" in message.body
    assert "go on being billed, also beyond the budget" in message.body
    assert "Gone" not in message.body
    assert message.extra_headers["Message-ID"] == f"<budget-promise-{tenant.id}@localhost>"


def test_who_has_changed_all_of_them_meanwhile_gets_no_mail(api, tenant, at, make_budget):
    make_budget(5_000)
    run_outbox()
    mail.outbox.clear()
    announce()
    assert mail.outbox == []


def test_those_that_act_are_marked(tenant, at, make_budget):
    spend_cents(tenant.id, 100)
    budget = make_budget(50)
    with organization_scope(tenant.id):
        Budget.objects.filter(pk=budget["id"]).update(acting_as="")
    announce()
    with organization_scope(tenant.id):
        assert Budget.objects.get().acting_as == "suspend"
    with system_scope():
        assert not OutboxEntry.objects.exists()
