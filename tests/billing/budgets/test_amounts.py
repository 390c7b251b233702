"""Amounts of budgets for which nothing else follows, which are written all at once."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.budgets import evaluation
from billing.budgets.evaluation import evaluate_budgets
from billing.models import Budget, BudgetEvent
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import spend_cents, spend_more_cents
from tests.console.factories import make_tenant

MINUTES = [T0.replace(minute=minute) for minute in range(1, 6)]


@pytest.fixture
def budgets(at, api, make_budget):
    """Six organizations with a budget of $10, of which each has spent a cent."""
    tenants = [make_tenant(f"many{number}") for number in range(6)]
    for tenant in tenants:
        answer = api(tenant.key).post(
            "/budgets", {"name": "Team", "amount_minor": 1_000, "action": "suspend"}
        )
        assert answer.status_code == 201, answer.content
        spend_cents(tenant.id, 1)
    at(MINUTES[0])
    assert evaluate_budgets() == len(tenants)
    return tenants


def spent():
    with system_scope():
        return {row.organization_id: row.spent_minor for row in Budget.objects.all()}


def test_amounts_are_written_with_as_many_queries_for_one_as_for_all(budgets, at):
    counts = []
    for minute, tenants in zip(MINUTES[1:], (budgets[:1], budgets), strict=False):
        at(minute)
        for tenant in tenants:
            spend_more_cents(tenant.id, 2)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert evaluate_budgets() == len(tenants)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert spent() == {tenant.id: 5 if tenant is budgets[0] else 3 for tenant in budgets}
    with system_scope():
        assert not BudgetEvent.objects.exclude(kind="created").exists()
        assert set(Budget.objects.values_list("evaluated_at", flat=True)) == {MINUTES[2]}


def test_a_budget_that_is_changed_meanwhile_keeps_what_it_has(budgets, at, monkeypatch):
    at(MINUTES[1])
    for tenant in budgets:
        spend_more_cents(tenant.id, 2)
    real = vars(evaluation)["spent_by_organization"]

    def meanwhile(*arguments):
        amounts = real(*arguments)
        with organization_scope(budgets[0].id):
            Budget.objects.filter(organization_id=budgets[0].id).update(generation=9, spent_minor=7)
        return amounts

    monkeypatch.setattr(evaluation, "spent_by_organization", meanwhile)
    evaluate_budgets()
    assert spent() == {tenant.id: 7 if tenant is budgets[0] else 3 for tenant in budgets}


def test_who_reaches_something_comes_first_and_others_follow(budgets, at):
    at(MINUTES[1])
    for tenant in budgets:
        spend_more_cents(tenant.id, 2_000 if tenant is budgets[-1] else 2)
    assert evaluate_budgets() == len(budgets)
    with system_scope():
        (acting,) = Budget.objects.exclude(acting_as="")
    assert acting.organization_id == budgets[-1].id
    assert set(spent().values()) == {3, 2_001}
