"""Evaluation of budgets: thresholds and their mails, suspension, and the next month."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing import tasks
from billing.budgets import evaluation
from billing.budgets.changes import create_budget, lock_budgets
from billing.models import Budget, BudgetEvent
from billing.rating import Spent
from console.base.accounts.models import Membership
from console.base.accounts.signals import traffic_limit_changed
from console.base.common.actor import Role, system_actor
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope
from console.settings.schedule import BEAT_SCHEDULE
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import spend_cents, spend_more_cents
from tests.billing.budgets.test_budgets import kinds, show, suspended
from tests.console.factories import make_tenant, make_user
from tests.console.outbox import run_outbox

DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)
LAST_MINUTE = DECEMBER - timedelta(minutes=1)


@pytest.fixture
def evaluate(at):
    """Runs one evaluation, some seconds after the one before, and the tasks that it enqueues."""
    moments = iter(T0 + timedelta(seconds=30 * n) for n in range(1, 1_000))

    def run(moment=None):
        at(moment or next(moments))
        changed = evaluation.evaluate_budgets()
        run_outbox()
        return changed

    return run


def subjects():
    return [message.subject for message in mail.outbox]


def test_it_runs_often_enough():
    entry = BEAT_SCHEDULE["evaluate-budgets"]
    assert entry["task"] == tasks.evaluate_budgets.name
    assert entry["schedule"] <= 60


def test_each_threshold_is_mailed_once(tenant, make_budget, evaluate):
    make_budget(100, action="notify")
    run_outbox()
    spend_cents(tenant.id, 49)
    for cents in (0, 1, 1, 29, 10, 10, 50):
        spend_more_cents(tenant.id, cents)
        evaluate()
        evaluate()
    assert subjects() == [f'Budget "Team": {percent} % reached' for percent in (50, 80, 100)]
    assert "$0.50 is spent of the budget" in mail.outbox[0].body
    assert "of $1.00 for November 2026" in mail.outbox[0].body
    assert "It only notifies" in mail.outbox[0].body


def test_several_at_a_time_are_one_mail(api, tenant, make_budget, evaluate):
    budget = make_budget(100, action="notify")
    spend_cents(tenant.id, 90)
    evaluate()
    assert subjects() == ['Budget "Team": 80 % reached']
    thresholds = [event["threshold"] for event in show(api, budget)["events"]]
    assert sorted(threshold for threshold in thresholds if threshold) == [50, 80]


def test_another_amount_has_thresholds_of_its_own(api, tenant, make_budget, evaluate):
    budget = make_budget(100, action="notify", thresholds=[50])
    spend_cents(tenant.id, 60)
    evaluate()
    api().patch(f"/budgets/{budget['id']}", {"amount_minor": 1_000})
    evaluate()
    spend_more_cents(tenant.id, 500)
    evaluate()
    assert subjects() == ['Budget "Team": 50 % reached'] * 2


def test_the_next_month_mails_anew(tenant, make_budget, evaluate):
    make_budget(100, action="notify", thresholds=[100])
    spend_cents(tenant.id, 100)
    evaluate()
    evaluate(DECEMBER)
    spend_cents(tenant.id, 100)
    evaluate(DECEMBER + timedelta(hours=1))
    assert len(mail.outbox) == 2
    assert "December 2026" in mail.outbox[1].body


def test_the_mail_goes_to_those_who_look_after_money(tenant, make_budget, evaluate):
    users = {role: make_user(f"{role}@acme.example") for role in set(Role) - {Role.OWNER}}
    gone = make_user("gone@acme.example")
    with organization_scope(tenant.id):
        for role, user in users.items():
            Membership.objects.create(organization=tenant.organization, user=user, role=role)
        gone.is_active = False
        gone.save()
        Membership.objects.create(organization=tenant.organization, user=gone, role=Role.BILLING)
    make_budget(1)
    spend_cents(tenant.id, 1)
    evaluate()
    (message,) = mail.outbox
    assert message.to == [
        "admin@acme.example",
        "billing@acme.example",
        "owner@acme.example",
    ]


def test_an_organization_without_anybody_gets_no_mail(tenant, make_budget, evaluate):
    with organization_scope(tenant.id):
        Membership.objects.all().delete()
    make_budget(1)
    spend_cents(tenant.id, 1)
    evaluate()
    assert mail.outbox == []


def test_a_repeated_mail_is_known_by_its_id(tenant, make_budget, evaluate):
    make_budget(1)
    spend_cents(tenant.id, 1)
    evaluate()
    with organization_scope(tenant.id):
        event = BudgetEvent.objects.get(kind="suspended")
    for _ in range(2):
        tasks.send_budget_mail.apply(
            kwargs={"organization_id": tenant.id, "event_id": event.pk}, throw=True
        )
    ids = {message.extra_headers["Message-ID"] for message in mail.outbox}
    assert len(mail.outbox) == 3
    assert ids == {f"<{event.pk}@localhost>"}


def test_a_suspension_is_one_mail_and_says_what_to_do(api, tenant, make_budget, evaluate):
    budget = make_budget(1)
    spend_cents(tenant.id, 3)
    assert suspended(api) is None
    assert evaluate() == 1
    assert suspended(api)
    assert subjects() == ['Produce and fetch are suspended: budget "Team" is used up']
    assert "go on being billed: $0.00 of November 2026 so far" in mail.outbox[0].body
    assert "of $0.01 for November 2026 is used up: $0.03 so far." in mail.outbox[0].body
    assert "1 December 2026 (UTC)" in mail.outbox[0].body
    assert "http://localhost:8080/usage/budgets" in mail.outbox[0].body
    assert "suspended" in kinds(show(api, budget))
    assert evaluate() == 0


def test_a_throttle_is_one_mail_and_says_that_all_is_billed(api, tenant, make_budget, evaluate):
    make_budget(1, action="throttle", throttle_bytes_per_s=2**19)
    spend_cents(tenant.id, 3)
    evaluate()
    evaluate()
    assert subjects() == ['Traffic is slowed down: budget "Team" is used up']
    assert "gives out 512 KiB a second at most" in mail.outbox[0].body
    assert "All that is produced, fetched and stored goes on being billed" in mail.outbox[0].body


def test_one_that_is_used_up_in_the_first_minute_of_a_month_says_so_again(
    api, tenant, make_budget, evaluate
):
    budget = make_budget(1)
    spend_cents(tenant.id, 3)
    evaluate(LAST_MINUTE)
    spend_cents(tenant.id, 5, minute=DECEMBER)
    evaluate(DECEMBER + timedelta(seconds=30))
    assert len(subjects()) == 2
    assert "December 2026 is used up: $0.05 so far" in mail.outbox[1].body
    shown = show(api, budget)
    december = [event["kind"] for event in shown["events"] if event["month"] == "2026-12"]
    assert "suspended" in december
    assert "resumed" not in december
    assert "1 January 2027" in suspended(api)


def test_the_month_turns_and_traffic_goes_on(api, tenant, make_budget, evaluate):
    budget = make_budget(100)
    spend_cents(tenant.id, 100)
    evaluate(LAST_MINUTE)
    assert suspended(api)
    evaluate(DECEMBER)
    assert suspended(api) is None
    shown = show(api, budget)
    assert (shown["month"], shown["spent_minor"], shown["state"]) == ("2026-12", 0, "ok")
    assert kinds(shown)[0] == "resumed"


def test_without_a_change_nothing_is_written(tenant, make_budget, evaluate):
    make_budget(100)
    spend_cents(tenant.id, 10)
    assert evaluate() == 1
    with CaptureQueriesContext(connection) as captured:
        assert evaluate() == 0
    written = [q["sql"] for q in captured if q["sql"].split()[0] in {"UPDATE", "INSERT"}]
    assert written == []


def test_many_organizations_are_read_at_once(evaluate):
    def count(organizations):
        for number in range(organizations):
            tenant = make_tenant(f"Many{organizations}{number}")
            with organization_scope(tenant.id):
                create_budget(
                    actor=system_actor(tenant.id),
                    name="x",
                    amount_minor=100,
                    thresholds=[],
                    action="notify",
                )
        with CaptureQueriesContext(connection) as captured:
            assert evaluate() == 0
        return len(captured)

    assert count(1) == count(4)


def test_one_that_fails_keeps_no_other_from_its_budget(
    api, tenant, other_tenant, make_budget, evaluate
):
    make_budget(1)
    made = api(other_tenant.key).post(
        "/budgets", {"name": "x", "amount_minor": 1, "action": "suspend"}
    )
    assert made.status_code == 201
    for organization in (tenant, other_tenant):
        spend_cents(organization.id, 1)

    def refuse(organization_id, **_):
        if organization_id == tenant.id:
            message = "a defect"
            raise RuntimeError(message)

    traffic_limit_changed.connect(refuse)
    try:
        assert evaluate() == 1
    finally:
        traffic_limit_changed.disconnect(refuse)
    assert suspended(api) is None
    assert api(other_tenant.key).get("/organizations/current").json()["produce_suspended_reason"]
    # All of the failed one was taken back, so that the next round does all of it.
    assert evaluate() == 1
    assert suspended(api)


def test_what_was_known_earlier_undoes_nothing(api, tenant, at, make_budget):
    known = evaluation.Spending(T0.date().replace(day=1), Spent(), T0)
    at(T0 + timedelta(seconds=1))
    spend_cents(tenant.id, 100)
    make_budget(100)
    assert suspended(api)
    assert evaluation.evaluate_organization(organization_id=tenant.id, spending=known)
    assert suspended(api)
    with organization_scope(tenant.id):
        assert Budget.objects.get().spent_minor == 100


@pytest.mark.django_db(transaction=True)
def test_whoever_changes_budgets_is_not_waited_for():
    tenant = make_tenant("Busy")
    spending = evaluation.Spending(T0.date().replace(day=1), Spent(), T0)

    def look():
        try:
            return evaluation.evaluate_organization(organization_id=tenant.id, spending=spending)
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        with organization_scope(tenant.id):
            lock_budgets(organization_id=tenant.id)
            assert pool.submit(look).result() is False
        assert pool.submit(look).result() is True


def test_mails_and_suspension_come_with_the_evaluation_or_not_at_all(tenant, at, make_budget):
    make_budget(1)
    run_outbox()
    spend_cents(tenant.id, 1)
    at(T0 + timedelta(minutes=1))
    evaluation.evaluate_budgets()
    with organization_scope(tenant.id):
        assert [entry.task for entry in OutboxEntry.objects.all()] == [tasks.send_budget_mail.name]
