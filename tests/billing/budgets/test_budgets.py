"""Budgets through the API: what people set, and what follows at once."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from billing.models import BudgetEvent
from console.base.common.actor import Role
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import spend_cents, spend_more_cents
from tests.console import cases


class TestBudgets(
    cases.ListCases,
    cases.RetrieveCases,
    cases.CreateCases,
    cases.UpdateCases,
    cases.DestroyCases,
):
    path = "/budgets"
    create_body = {"name": "Team", "amount_minor": 5000}
    update_body = {"name": "Everybody", "amount_minor": 7000, "action": "suspend"}


def suspended(api):
    """Why the organization's produce is suspended, None where it is not."""
    return api().get("/organizations/current").json()["produce_suspended_reason"]


def limit(api):
    """The organization's traffic limit, None where there is none."""
    return api().get("/organizations/current").json()["traffic_limit"]


def show(api, budget):
    return api().get(f"/budgets/{budget['id']}").json()


def kinds(budget):
    return [event["kind"] for event in budget["events"]]


def test_a_new_budget_shows_its_state(api, tenant, at, make_budget):
    spend_cents(tenant.id, 60)
    budget = make_budget(100, action="notify")
    assert (budget["state"], budget["spent_minor"], budget["month"]) == ("warned", 60, "2026-11")
    assert budget["thresholds"] == [50, 80, 100]
    assert budget["currency"] == "USD"
    assert budget["suspended_at"] is None
    assert sorted(kinds(show(api, budget))) == ["created", "threshold_reached"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "x", "amount_minor": 0}, "/amount_minor"),
        ({"name": "x", "amount_minor": 10**15 + 1}, "/amount_minor"),
        ({"name": "x", "amount_minor": 1.5}, "/amount_minor"),
        ({"name": "x\nBcc: you@example.com", "amount_minor": 1}, "/name"),
        ({"name": "x", "amount_minor": 1, "thresholds": [0]}, "/thresholds/0"),
        ({"name": "x", "amount_minor": 1, "thresholds": [50] * 11}, "/thresholds"),
        ({"name": "x", "amount_minor": 1, "action": "stop"}, "/action"),
        ({"name": "x", "amount_minor": 1, "throttle_bytes_per_s": 2**20}, "/throttle_bytes_per_s"),
        (
            {"name": "x", "amount_minor": 1, "action": "throttle", "throttle_bytes_per_s": 65_535},
            "/throttle_bytes_per_s",
        ),
    ],
)
def test_what_cannot_be_is_pointed_to(api, body, pointer):
    document = cases.assert_problem(api().post("/budgets", body), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer


def test_thresholds_are_kept_in_order_and_once(make_budget):
    assert make_budget(thresholds=[100, 20, 100])["thresholds"] == [20, 100]
    assert make_budget(thresholds=[])["thresholds"] == []


@pytest.mark.parametrize(
    ("role", "status"),
    [
        (Role.OWNER, 201),
        (Role.ADMIN, 201),
        (Role.BILLING, 201),
        (Role.DEVELOPER, 403),
        (Role.VIEWER, 403),
    ],
)
def test_who_sets_budgets(api, tenant, role, status):
    body = {"name": "x", "amount_minor": 1}
    assert api(tenant.keys[role]).post("/budgets", body).status_code == status
    assert api(tenant.keys[role]).get("/budgets").status_code == 200


def test_the_limit_is_shown(api, settings, make_budget):
    limits = settings.FRESHET.limits
    object.__setattr__(limits, "budgets", 1)
    try:
        first = make_budget()
        body = {"name": "second", "amount_minor": 1}
        document = cases.assert_problem(api().post("/budgets", body), 403, "limit_reached")
        assert document["quota"] == {"name": "budgets", "limit": 1, "used": 1}
        assert api().delete(f"/budgets/{first['id']}").status_code == 204
        make_budget()
    finally:
        object.__setattr__(limits, "budgets", 20)


def test_a_budget_that_is_used_up_suspends_at_once_and_says_what_to_do(
    api, tenant, at, make_budget
):
    spend_cents(tenant.id, 1)
    budget = make_budget(1)
    assert (budget["state"], budget["suspended_at"]) == ("exceeded", "2026-11-21T15:00:00Z")
    assert suspended(api) == (
        'Produce and fetch are suspended: the budget "Team" of $0.01 for November 2026 is used up. '
        "Raise or remove it at http://localhost:8080/usage/budgets, or wait until 1 December 2026 "
        "(UTC)."
    )
    assert limit(api)["kind"] == "refuse"


def test_a_budget_that_throttles_has_a_rate(api, tenant, at, make_budget):
    spend_cents(tenant.id, 1)
    budget = make_budget(1, action="throttle")
    assert (budget["throttle_bytes_per_s"], budget["suspended_at"]) == (2**20, None)
    assert budget["throttled_at"] == "2026-11-21T15:00:00Z"
    assert "throttled" in kinds(show(api, budget))
    assert limit(api) == {
        "kind": "throttle",
        "reason": "Each cluster takes and gives out 1 MiB a second at most: the budget "
        '"Team" of $0.01 for November 2026 is used up. Raise or remove it at '
        "http://localhost:8080/usage/budgets, or wait until 1 December 2026 (UTC).",
        "bytes_per_s": 2**20,
    }
    assert suspended(api) is None
    path = f"/budgets/{budget['id']}"
    assert api().patch(path, {"throttle_bytes_per_s": 2**16}).status_code == 200
    assert limit(api)["bytes_per_s"] == 2**16
    assert "64 KiB" in limit(api)["reason"]
    assert api().patch(path, {"name": "Else"}).json()["throttle_bytes_per_s"] == 2**16
    # Another action has no rate, and acts at once.
    changed = api().patch(path, {"action": "suspend"}).json()
    assert (changed["throttle_bytes_per_s"], changed["throttled_at"]) == (None, None)
    assert changed["suspended_at"]
    assert limit(api)["kind"] == "refuse"
    assert "resumed" not in kinds(show(api, budget))
    response = api().patch(path, {"throttle_bytes_per_s": 2**16})
    document = cases.assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/throttle_bytes_per_s"


def test_the_strictest_of_several_budgets_holds(api, tenant, at, make_budget):
    spend_cents(tenant.id, 100)
    make_budget(10, name="Fast", action="throttle", throttle_bytes_per_s=2**21)
    slow = make_budget(20, name="Slow", action="throttle", throttle_bytes_per_s=2**20)
    assert limit(api)["bytes_per_s"] == 2**20
    stop = make_budget(30, name="Stop")
    assert limit(api)["kind"] == "refuse"
    api().delete(f"/budgets/{stop['id']}")
    api().delete(f"/budgets/{slow['id']}")
    assert (limit(api)["kind"], limit(api)["bytes_per_s"]) == ("throttle", 2**21)


@pytest.mark.parametrize(
    "change", [{"amount_minor": 101}, {"action": "notify"}, None], ids=["raise", "notify", "remove"]
)
def test_who_gives_way_lifts_it_at_once(api, tenant, at, make_budget, change):
    spend_cents(tenant.id, 100)
    budget = make_budget(100)
    assert suspended(api)
    path = f"/budgets/{budget['id']}"
    if change is None:
        assert api().delete(path).status_code == 204
        cases.assert_problem(api().get(path), 404, "not_found")
    else:
        changed = api().patch(path, change).json()
        assert changed["suspended_at"] is None
        assert changed["generation"] == 2
        assert sorted(kinds(show(api, budget)))[:2] == ["changed", "created"]
        assert "resumed" in kinds(show(api, budget))
    assert suspended(api) is None


def test_a_change_that_is_not_enough_lifts_nothing(api, tenant, at, make_budget):
    spend_cents(tenant.id, 100)
    budget = make_budget(50)
    changed = api().patch(f"/budgets/{budget['id']}", {"amount_minor": 100}).json()
    assert changed["suspended_at"] == budget["suspended_at"]
    assert "of $1.00" in suspended(api)
    assert "resumed" not in kinds(show(api, budget))


def test_of_several_each_must_give_way(api, tenant, at, make_budget):
    spend_cents(tenant.id, 100)
    one = make_budget(50, name="One")
    at(T0 + timedelta(seconds=1))
    two = make_budget(60, name="Two")
    assert '"One"' in suspended(api)
    api().delete(f"/budgets/{one['id']}")
    assert '"Two"' in suspended(api)
    api().patch(f"/budgets/{two['id']}", {"action": "notify"})
    assert suspended(api) is None


def test_another_organizations_spending_is_its_own(api, tenant, other_tenant, at, make_budget):
    spend_cents(other_tenant.id, 1_000)
    assert make_budget(1)["state"] == "ok"
    assert suspended(api) is None


def test_what_says_the_same_is_no_change(api, make_budget):
    budget = make_budget(100)
    again = api().patch(f"/budgets/{budget['id']}", {"amount_minor": 100, "name": "Team"})
    assert again.json()["generation"] == 1


def test_changes_are_audited(api, tenant, make_budget):
    budget = make_budget(100)
    api().patch(f"/budgets/{budget['id']}", {"amount_minor": 200})
    api().delete(f"/budgets/{budget['id']}")
    with organization_scope(tenant.id):
        entries = AuditEntry.objects.filter(target_id=budget["id"]).order_by("created_at")
        audited = [(entry.action, entry.detail) for entry in entries]
    assert [action for action, _ in audited] == ["budget.create", "budget.update", "budget.remove"]
    assert audited[1][1] == {"amount_minor": {"from": 100, "to": 200}}
    assert audited[2][1] == {"name": budget["name"]}


def test_events_never_change(api, tenant, make_budget):
    make_budget()
    with organization_scope(tenant.id):
        for change in (
            lambda: BudgetEvent.objects.update(spent_minor=0),
            lambda: BudgetEvent.objects.all().delete(),
        ):
            with pytest.raises(ProgrammingError), transaction.atomic():
                change()
        assert BudgetEvent.objects.count() == 1
    assert connection.in_atomic_block


def test_a_budget_shows_its_newest_events(api, tenant, at, make_budget):
    budget = make_budget(100, thresholds=list(range(1, 11)))
    for amount in (200, 300, 400):
        api().patch(f"/budgets/{budget['id']}", {"amount_minor": amount})
        spend_more_cents(tenant.id, 1)
    spend_cents(tenant.id, 100)
    api().patch(f"/budgets/{budget['id']}", {"amount_minor": 500})
    api().patch(f"/budgets/{budget['id']}", {"amount_minor": 600})
    shown = show(api, budget)["events"]
    assert len(shown) == 20
    assert api().get("/budgets").json()["items"][0]["events"] == shown
