"""The invoice and the estimate say the same of a month, with and without a budget that caps it."""

from datetime import UTC, datetime

import pytest

from billing.budgets.evaluation import evaluate_budgets
from tests.billing import world

USED_MINOR = 180
MID_MONTH = datetime(2026, 9, 15, tzinfo=UTC)
LAST_DAY = datetime(2026, 9, 30, 12, tzinfo=UTC)


@pytest.fixture
def issued(api, at, tenant):
    """Publishes a month of usage and issues its invoice, with actions meanwhile.

    Checks that invoice and costs agree; returns the amounts of the invoice's cap lines.
    """

    def run(meanwhile):
        world.sign_up(tenant.organization)
        cluster = world.make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
        at(MID_MONTH)
        meanwhile("before")
        world.publish_month(world.usual_usage(tenant.id, cluster))
        at(LAST_DAY)
        evaluate_budgets()
        meanwhile("after")
        at(world.AFTER)
        meanwhile("next month")
        world.issue_invoices()
        (invoice,) = api().get("/invoices").json()["items"]
        shown = api().get(f"/invoices/{invoice['id']}").json()
        costs = api().get("/costs", query={"month": "2026-09"}).json()
        assert costs["total_minor"] == costs["forecast_minor"] == shown["subtotal_minor"]
        assert costs["beyond_budget_minor"] == USED_MINOR - costs["total_minor"]
        used = {(line["meter"], line["amount_minor"]) for line in costs["lines"]}
        billed = [line for line in shown["lines"] if line["kind"] == "usage"]
        assert {(line["meter"], line["amount_minor"]) for line in billed} == used
        return [line["amount_minor"] for line in shown["lines"] if line["kind"] == "cap"]

    return run


def test_without_a_budget_all_of_it_is_billed(issued):
    assert issued(lambda moment: None) == []


def test_what_slipped_past_a_budget_is_a_line_of_its_own(issued, make_budget):
    # Storage costs 120 and is billed; of the traffic, which costs 60, nothing was left.
    assert issued(lambda moment: make_budget(100) if moment == "before" else None) == [-60]


def test_what_was_left_of_a_budget_is_billed(issued, make_budget):
    assert issued(lambda moment: make_budget(150) if moment == "before" else None) == [-30]


def test_throttling_takes_nothing_back(issued, make_budget):
    made = []

    def meanwhile(moment):
        if moment == "before":
            made.append(make_budget(100, action="throttle"))

    assert issued(meanwhile) == []


def test_a_budget_that_was_set_afterwards_takes_nothing_back(issued, make_budget):
    assert issued(lambda moment: make_budget(100) if moment == "after" else None) == []


def test_a_budget_of_the_next_month_is_none_of_this_one(issued, make_budget):
    assert issued(lambda moment: make_budget(1) if moment == "next month" else None) == []


@pytest.mark.parametrize(("when", "expected"), [("after", []), ("next month", [-60])])
def test_a_budget_that_is_removed_caps_the_months_that_are_over(
    api, issued, make_budget, when, expected
):
    made = []

    def meanwhile(moment):
        if moment == "before":
            made.append(make_budget(100)["id"])
        if moment == when:
            assert api().delete(f"/budgets/{made[0]}").status_code == 204

    assert issued(meanwhile) == expected
