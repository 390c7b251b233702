"""The most that a month is billed: by the suspending budgets in force at its end."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from billing.budgets import evaluation
from billing.budgets.caps import budget_caps
from billing.budgets.changes import create_budget, lock_budgets, remove_budget, update_budget
from billing.budgets.rules import billed_minor, most_billed
from billing.models import Budget, BudgetEvent
from billing.rating import Spent
from billing.spending import spent_by_organization
from console.base.common.actor import system_actor
from console.base.common.ids import random_text
from console.base.common.tenancy import organization_scope
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import (
    keep_cents,
    keep_more_cents,
    spend_cents,
    spend_more_cents,
)
from tests.console.factories import make_tenant

OCTOBER, NOVEMBER, DECEMBER = date(2026, 10, 1), date(2026, 11, 1), date(2026, 12, 1)


@pytest.fixture
def cap(tenant):
    """Reads the cap of a month."""

    def read(month=NOVEMBER, kept_minor=0):
        with organization_scope(tenant.id):
            return most_billed(budget_caps(tenant.id, month), kept_minor=kept_minor)

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


def test_what_is_kept_is_billed_beyond_it_from_the_refusal_on(tenant, at, make_budget, cap):
    make_budget(100)
    spend_cents(tenant.id, 85)
    keep_cents(tenant.id, 20)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    # 80 were left for traffic when it was refused; what is kept later adds to the bill.
    assert (cap(kept_minor=20), cap(kept_minor=50)) == (100, 130)


def test_storage_alone_uses_it_up(tenant, at, make_budget, cap):
    budget = make_budget(100)
    spend_cents(tenant.id, 30)
    keep_cents(tenant.id, 75)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    assert (cap(kept_minor=75), cap(kept_minor=400)) == (100, 425)
    with organization_scope(tenant.id):
        assert Budget.objects.get(pk=budget["id"]).acting_as == "suspend"


def test_one_that_was_used_up_when_it_was_set_knows_what_was_kept(tenant, at, make_budget, cap):
    spend_cents(tenant.id, 60)
    keep_cents(tenant.id, 50)
    make_budget(100)
    # All of the traffic so far is billed, and none that follows.
    assert (cap(kept_minor=50), cap(kept_minor=70)) == (110, 130)


def test_one_that_goes_on_refusing_after_a_change_knows_it_too(tenant, at, make_budget, cap, patch):
    budget = make_budget(100)
    spend_cents(tenant.id, 90)
    keep_cents(tenant.id, 30)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    assert cap(kept_minor=30) == 100
    patch(budget, amount_minor=110)
    assert (cap(kept_minor=30), cap(kept_minor=40)) == (110, 120)


def test_where_traffic_went_on_the_end_of_the_month_counts(tenant, at, make_budget, cap, patch):
    budget = make_budget(100)
    spend_cents(tenant.id, 100)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    patch(budget, amount_minor=1_000)
    assert (cap(kept_minor=0), cap(kept_minor=300)) == (1_000, 1_000)


def test_throttling_caps_nothing(tenant, at, make_budget, cap):
    spend_cents(tenant.id, 500)
    make_budget(100, action="throttle")
    assert cap() is None


@pytest.fixture
def old_budget(tenant, at):
    """A suspending budget as the release before decision 0016 left it, upgraded in November."""

    def make(amount_minor, base_minor=0, created_at=T0):
        with organization_scope(tenant.id):
            budget = Budget.objects.create(
                organization_id=tenant.id,
                name="Old",
                amount_minor=amount_minor,
                currency="USD",
                thresholds=[],
                action="suspend",
                month=NOVEMBER,
                evaluated_at=created_at,
                spent_minor=0,
                state="ok",
                covers_all_until=NOVEMBER,
                created_at=created_at,
            )
            BudgetEvent.objects.create(
                organization_id=tenant.id,
                budget=budget,
                kind="created",
                month=created_at.date().replace(day=1),
                spent_minor=base_minor,
                amount_minor=amount_minor,
                action="suspend",
                generation=1,
                base_minor=base_minor,
                covers_all_until=NOVEMBER,
                created_at=created_at,
            )
        return {"id": budget.pk}

    return make


def test_the_old_promise_holds_to_the_end_of_its_month(tenant, at, old_budget, cap):
    old_budget(100, created_at=datetime(2026, 9, 5, tzinfo=UTC))
    assert [cap(month, kept_minor=500) for month in (OCTOBER, NOVEMBER)] == [100, 100]
    assert cap(DECEMBER, kept_minor=500) == 500


def test_a_change_ends_the_old_promise(tenant, at, old_budget, cap, patch):
    spend_cents(tenant.id, 60)
    keep_cents(tenant.id, 70)
    budget = old_budget(100)
    assert cap(kept_minor=70) == 100
    patch(budget, amount_minor=110)
    # Of the traffic 30 were billable before, and 40 are now; what is kept is billed in full.
    assert (cap(kept_minor=70), cap(kept_minor=90)) == (110, 130)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("spend"), st.integers(1, 50)),
        st.tuples(st.just("keep"), st.integers(1, 50)),
        st.tuples(st.just("set"), st.integers(1, 200)),
        st.tuples(st.sampled_from(["notify", "throttle", "remove", "evaluate"]), st.just(0)),
    ),
    max_size=8,
)


class Model:
    """What is billable, step by step: of traffic what was left when it was refused."""

    def __init__(self):
        self.traffic = self.kept = self.base = 0
        self.limit = None
        self.kept_at_refusal = None

    def billable_traffic(self):
        if self.limit is None:
            return self.traffic
        kept = self.kept if self.kept_at_refusal is None else self.kept_at_refusal
        return min(self.traffic, max(self.limit - kept, self.base))

    def evaluate(self):
        if self.limit is None or self.traffic + self.kept < self.limit:
            self.kept_at_refusal = None
        elif self.kept_at_refusal is None:
            self.kept_at_refusal = self.kept

    def set(self, limit):
        self.base, self.limit, self.kept_at_refusal = self.billable_traffic(), limit, None
        self.evaluate()


def change_budget(actor, budget, kind, number):
    """Does what a step says, through the services; returns the budget, or None."""
    if kind == "evaluate":
        moment = timezone.now()
        spent = spent_by_organization(NOVEMBER, [actor.organization_id])[actor.organization_id]
        spending = evaluation.Spending(NOVEMBER, spent, moment)
        evaluation.evaluate_organization(organization_id=actor.organization_id, spending=spending)
        return None if budget is None else Budget.objects.get(pk=budget.pk)
    if kind == "remove":
        if budget is not None:
            remove_budget(actor=actor, budget=budget)
        return None
    action = "suspend" if kind == "set" else kind
    if budget is None:
        return create_budget(
            actor=actor, name="x", amount_minor=number or 1, thresholds=[], action=action
        )
    changes = {"action": action} | ({"amount_minor": number} if kind == "set" else {})
    return update_budget(actor=actor, budget=budget, changes=changes)


@pytest.mark.django_db
@hypothesis_settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
@example(steps=[("set", 1), ("spend", 1), ("set", 1)])
@example(steps=[("set", 50), ("spend", 45), ("keep", 10), ("evaluate", 0), ("keep", 30)])
def test_whatever_people_do_a_month_is_billed_what_its_last_budget_let_them_spend(
    steps, monkeypatch
):
    tenant = make_tenant(random_text(10))
    actor = system_actor(tenant.id)
    moment = T0
    monkeypatch.setattr(timezone, "now", lambda: moment)
    spend_cents(tenant.id, 0)
    keep_cents(tenant.id, 0)
    model = Model()
    budget: Budget | None = None
    for kind, number in steps:
        moment += timedelta(seconds=1)
        before = model.billable_traffic()
        with organization_scope(tenant.id):
            lock_budgets(organization_id=tenant.id)
            if kind == "spend":
                spend_more_cents(tenant.id, number)
                model.traffic += number
            elif kind == "keep":
                keep_more_cents(tenant.id, number)
                model.kept += number
            else:
                budget = change_budget(actor, budget, kind, number)
                if kind == "evaluate":
                    model.evaluate()
                # Setting what is set already changes nothing, and so evaluates nothing.
                elif kind != "set" or number != model.limit:
                    model.set(number if kind == "set" else None)
                    assert model.billable_traffic() >= before
            billed = billed_minor(
                Spent(model.traffic, model.kept), budget_caps(tenant.id, NOVEMBER)
            )
            assert billed == model.kept + model.billable_traffic()
            acts = budget is not None and budget.acting_as == "suspend"
            assert acts == (model.kept_at_refusal is not None)
