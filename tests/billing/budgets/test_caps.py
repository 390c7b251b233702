"""The most that a month is billed: by the suspending budgets in force at its end."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from billing.budgets.caps import budget_caps
from billing.budgets.changes import create_budget, lock_budgets, remove_budget, update_budget
from billing.models import Budget
from console.base.common.actor import system_actor
from console.base.common.ids import random_text
from console.base.common.tenancy import organization_scope
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import spend_cents, spend_more_cents
from tests.console.factories import make_tenant

OCTOBER, NOVEMBER, DECEMBER = date(2026, 10, 1), date(2026, 11, 1), date(2026, 12, 1)


@pytest.fixture
def cap(tenant):
    """Reads the cap of a month."""

    def read(month=NOVEMBER):
        with organization_scope(tenant.id):
            return budget_caps(tenant.id, month)

    return read


@pytest.fixture
def patch(api):
    """Changes a budget through the API."""

    def change(budget, **fields):
        assert api().patch(f"/budgets/{budget['id']}", fields).status_code == 200

    return change


def test_without_a_budget_there_is_none(cap):
    assert cap() is None


def test_one_that_notifies_caps_nothing(at, make_budget, cap):
    make_budget(100, action="notify")
    assert cap() is None


def test_what_slips_past_is_beyond_it(tenant, at, make_budget, cap):
    make_budget(100)
    spend_cents(tenant.id, 180)
    assert cap() == 100


def test_the_smallest_of_several_holds(at, make_budget, cap):
    make_budget(300)
    make_budget(200)
    make_budget(100, action="notify")
    assert cap() == 200


def test_it_holds_in_every_later_month_and_in_none_before(tenant, at, make_budget, cap):
    spend_cents(tenant.id, 500)
    make_budget(100)
    assert (cap(OCTOBER), cap(NOVEMBER), cap(DECEMBER)) == (None, 500, 100)
    assert cap(date(2026, 11, 30)) == 500


def test_nothing_that_was_spent_before_is_free(tenant, at, make_budget, cap, patch):
    spend_cents(tenant.id, 500)
    budget = make_budget(1)
    assert cap() == 500
    spend_more_cents(tenant.id, 7)
    patch(budget, amount_minor=2)
    assert cap() == 500


def test_lowering_it_frees_nothing_either(tenant, at, make_budget, cap, patch):
    budget = make_budget(2_000)
    spend_cents(tenant.id, 1_080)
    patch(budget, amount_minor=1_000)
    assert cap() == 1_080


def test_raising_it_raises_the_cap_and_no_more(tenant, at, make_budget, cap, patch):
    budget = make_budget(1_000)
    spend_cents(tenant.id, 1_080)
    patch(budget, amount_minor=1_050)
    assert cap() == 1_050
    patch(budget, amount_minor=2_000)
    assert cap() == 2_000


def test_another_name_changes_nothing(tenant, at, make_budget, cap, patch):
    budget = make_budget(1_000)
    spend_cents(tenant.id, 1_080)
    patch(budget, name="Else", thresholds=[10])
    assert cap() == 1_000


@pytest.mark.parametrize("way", ["remove", "notify"])
def test_who_ends_it_within_the_month_pays_what_slipped_past(
    api, tenant, at, make_budget, cap, patch, way
):
    budget = make_budget(1_000)
    spend_cents(tenant.id, 1_080)
    if way == "remove":
        assert api().delete(f"/budgets/{budget['id']}").status_code == 204
    else:
        patch(budget, action="notify")
    assert cap() is None
    at(T0 + timedelta(minutes=1))
    again = make_budget(1)
    assert cap() == 1_080
    assert again["suspended_at"]


@pytest.mark.parametrize("way", ["remove", "notify", "raise", "lower"])
def test_after_the_month_nothing_changes_it(api, tenant, at, make_budget, cap, patch, way):
    budget = make_budget(1_000)
    at(datetime(2026, 12, 1, tzinfo=UTC))
    if way == "remove":
        assert api().delete(f"/budgets/{budget['id']}").status_code == 204
    else:
        patch(
            budget,
            amount_minor={"raise": 9_999, "lower": 1}.get(way, 1_000),
            action="notify" if way == "notify" else "suspend",
        )
    assert cap(NOVEMBER) == 1_000


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("spend"), st.integers(1, 50)),
        st.tuples(st.just("set"), st.integers(1, 200)),
        st.tuples(st.just("notify"), st.just(0)),
        st.tuples(st.just("remove"), st.just(0)),
    ),
    max_size=8,
)


@pytest.mark.django_db
@hypothesis_settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
@example(steps=[("set", 1), ("spend", 1), ("set", 1)])
def test_whatever_people_do_a_month_is_billed_what_its_last_budget_let_them_spend(
    steps, monkeypatch
):
    """Against a model: the billable amount grows with spending, up to the budget in force."""
    tenant = make_tenant(random_text(10))
    actor = system_actor(tenant.id)
    moment = T0
    monkeypatch.setattr(timezone, "now", lambda: moment)
    spend_cents(tenant.id, 0)
    spent, billable, limit = 0, 0, None
    budget: Budget | None = None
    for kind, number in steps:
        moment += timedelta(seconds=1)
        # Setting what is set already changes nothing, and so evaluates nothing.
        is_evaluated = kind != "spend" and (kind, number) != ("set", limit)
        with organization_scope(tenant.id):
            lock_budgets(organization_id=tenant.id)
            if kind == "spend":
                spend_more_cents(tenant.id, number)
                spent += number
            elif kind == "remove" and budget is not None:
                remove_budget(actor=actor, budget=budget)
                budget, limit = None, None
            elif kind != "remove" and budget is None:
                action = "notify" if kind == "notify" else "suspend"
                budget = create_budget(
                    actor=actor, name="x", amount_minor=number or 1, thresholds=[], action=action
                )
                limit = number if kind == "set" else None
            elif kind != "remove" and budget is not None:
                changes = {"action": "suspend", "amount_minor": number}
                changes = changes if kind == "set" else {"action": "notify"}
                budget = update_budget(actor=actor, budget=budget, changes=changes)
                limit = number if kind == "set" else None
            billable = spent if limit is None else max(billable, min(spent, limit))
            cap = budget_caps(tenant.id, NOVEMBER)
            assert (spent if cap is None else min(spent, cap)) == billable
            holding = budget is not None and budget.suspended_at is not None
            if is_evaluated:
                assert holding == (limit is not None and spent >= limit)
