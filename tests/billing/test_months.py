"""Months issue by themselves; who is left out is shown, and tried again until it is issued."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import call_command

from billing import metrics, tasks
from billing.models import InvoiceMonth, MissingInvoice
from billing.periods import last_closed_month
from billing.services import issuing, missing, numbers
from billing.services.details import billing_details, update_billing_details
from billing.services.issuing import issue_month
from billing.services.months import issue_due_months
from billing.services.store import document_store
from billing.services.writing import issue_drafts
from console.base.common.actor import system_actor
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope, system_scope
from console.settings.schedule import BEAT_SCHEDULE, NIGHTLY_QUEUE, TASK_ROUTES
from metering.choices import RunState
from metering.models import JudgedHour, RollupPointer, RollupRun
from tests.billing import world
from tests.billing.test_left_out import NO_RATE, make_customers
from tests.billing.world import MONTH, invoices_of

AUGUST = date(2026, 8, 1)
CLOSED_AT = datetime(2026, 10, 4, tzinfo=UTC)


@pytest.fixture
def customers(db, clock, missing_days):
    """Five customers of a month in which nobody used anything; the month before is done."""
    world.publish_month([], but=missing_days)
    InvoiceMonth.objects.create(month=AUGUST, finished_at=clock.now)
    return make_customers(5)


def run():
    """Does what the scheduler has done every ten minutes; returns the number of invoices."""
    issued = issue_due_months()
    numbers.confirm_blocks(document_store())
    return issued


def left_out():
    """Organization → its missing invoice."""
    with system_scope():
        return {row.organization_id: row for row in MissingInvoice.objects.all()}


def month_row():
    return InvoiceMonth.objects.get(pk=MONTH)


def unissued(clock):
    with system_scope():
        return missing.unissued_months(clock.now)


def test_a_month_issues_itself_72_hours_after_its_end(customers, clock):
    clock.now = CLOSED_AT - timedelta(microseconds=1)
    assert run() == 0
    clock.now = CLOSED_AT
    assert run() == 5
    assert [len(invoices_of(customer)) for customer in customers] == [1] * 5
    assert month_row().finished_at == CLOSED_AT
    assert (left_out(), unissued(clock)) == ({}, [])
    # What follows has nothing to do.
    assert run() == 0


@pytest.mark.parametrize(
    ("moment", "month"),
    [
        (datetime(2026, 10, 4, tzinfo=UTC), date(2026, 9, 1)),
        (datetime(2026, 10, 3, 23, 59, 59, tzinfo=UTC), date(2026, 8, 1)),
        (datetime(2026, 1, 4, tzinfo=UTC), date(2025, 12, 1)),
        (datetime(2026, 3, 3, 23, tzinfo=UTC), date(2026, 1, 1)),
    ],
)
def test_the_last_month_that_may_be_invoiced(moment, month):
    assert last_closed_month(moment) == month


def test_months_in_which_nothing_ran_are_caught_up(customers, clock):
    clock.now = datetime(2026, 12, 5, tzinfo=UTC)
    # No cluster was there, so days without a roll-up hold up nothing.
    assert run() == 3 * 5
    months = {invoice.month for invoice in invoices_of(customers[0])}
    assert months == {MONTH, date(2026, 10, 1), date(2026, 11, 1)}


def test_an_installation_begins_with_the_month_that_closed_last(customers):
    InvoiceMonth.objects.all().delete()
    assert run() == 5
    assert list(InvoiceMonth.objects.values_list("month", flat=True)) == [MONTH]


def test_who_cannot_be_invoiced_is_named_and_tried_again(customers, vat, clock):
    vat("DE=19")
    world.move_to(customers[3], "FR")
    assert run() == 4
    (row,) = left_out().values()
    assert (row.organization_id, row.kind, row.reason) == (customers[3], "impossible", NO_RATE)
    assert (row.month, row.attempts, row.created_at) == (MONTH, 1, clock.now)
    assert month_row().finished_at == clock.now
    (month,) = unissued(clock)
    assert (month.month, month.missing, month.reason) == (MONTH, 1, "")
    waits = []
    for attempts in range(2, 9):
        before, clock.now = clock.now, row.next_try_at - timedelta(microseconds=1)
        assert run() == 0
        assert left_out()[customers[3]].attempts == attempts - 1
        clock.now = row.next_try_at
        waits.append((clock.now - before) / timedelta(minutes=1))
        assert run() == 0
        row = left_out()[customers[3]]
        assert (row.attempts, row.tried_at) == (attempts, clock.now)
    assert waits == [10, 20, 40, 80, 160, 320, 360]
    vat("DE=19", "FR=20")
    clock.now = row.next_try_at
    assert run() == 1
    assert (left_out(), unissued(clock)) == ({}, [])
    (invoice,) = invoices_of(customers[3])
    assert invoice.number == "FR-2026-000005"


def test_usage_that_comes_late_is_invoiced_once_it_is_there(customers, used, clock):
    world.publish_month([])
    with system_scope():
        hours = JudgedHour.objects.filter(hour=datetime(2026, 9, 9, 9, tzinfo=UTC))
        assert hours.update(complete=False, reason="late") == 1
    assert run() == 5
    (row,) = left_out().values()
    assert (row.organization_id, row.kind) == (used.id, "usage_incomplete")
    assert row.reason == "1 hours of its usage are incomplete"
    with system_scope():
        JudgedHour.objects.filter(complete=False).update(complete=True)
    clock.now = row.next_try_at
    assert run() == 1
    assert left_out() == {}


def test_who_is_invoiced_by_hand_is_missing_no_more(customers, vat):
    vat("DE=19")
    for customer in customers[:2]:
        world.move_to(customer, "FR")
    run()
    vat("DE=19", "FR=20")
    issue_month(month=MONTH, by="tests", organization_id=customers[0])
    assert list(left_out()) == [customers[1]]
    # The command notes whom it leaves out, and drafts note nobody.
    vat("DE=19")
    issue_month(month=MONTH, by="tests")
    assert left_out()[customers[1]].attempts == 2
    issue_month(month=MONTH, by="tests", draft=True)
    assert left_out()[customers[1]].attempts == 2


def test_who_changes_its_billing_details_is_tried_by_the_next_run(customers, tenant, vat, clock):
    vat("DE=19")
    world.sign_up(tenant.organization)
    world.move_to(tenant.id, "FR")
    world.move_to(customers[0], "FR")
    run()
    assert run() == 0
    clock.now += timedelta(minutes=1)
    with organization_scope(tenant.id):
        update_billing_details(
            actor=system_actor(tenant.id),
            details=billing_details(tenant.id),
            changes={"country": "DE"},
        )
    assert run() == 1
    assert [invoice.month for invoice in invoices_of(tenant.id)] == [MONTH]
    assert left_out()[customers[0]].attempts == 1


def test_the_task_of_the_schedule_issues_and_fails_with_its_run(customers, documents, clock):
    entry = BEAT_SCHEDULE["issue-due-months"]["task"]
    assert entry == tasks.issue_due_months.name
    assert TASK_ROUTES[entry] == {"queue": NIGHTLY_QUEUE}
    documents.write_text("no folder")
    assert tasks.issue_due_months.apply().state == "FAILURE"
    documents.unlink()
    clock.now += timedelta(minutes=10)
    assert tasks.issue_due_months.apply().state == "SUCCESS"
    assert [len(invoices_of(customer)) for customer in customers] == [1] * 5


@pytest.mark.parametrize("missing_days", [(date(2026, 9, 17),)])
def test_a_month_without_a_roll_up_says_why_and_is_tried_again(customers, used, clock):
    assert run() == 0
    row = month_row()
    assert "2026-09-17" in row.reason
    assert (row.finished_at, row.attempts) == (None, 1)
    assert row.next_try_at == clock.now + timedelta(minutes=10)
    (month,) = unissued(clock)
    assert (month.missing, month.reason) == (0, row.reason)
    assert run() == 0
    assert month_row().attempts == 1
    world.publish_month([])
    clock.now = row.next_try_at
    assert run() == 6
    assert (month_row().reason, unissued(clock)) == ("", [])


def test_a_fault_of_the_store_fails_the_task_and_is_tried_again(customers, documents, clock):
    documents.write_text("no folder")
    with pytest.raises(OSError, match="documents"):
        run()
    assert "documents" in month_row().reason
    documents.unlink()
    clock.now += timedelta(minutes=10)
    assert run() == 5


def test_what_fails_while_it_is_tried_again_counts_as_an_attempt(customers, used, vat, clock):
    vat("DE=19")
    world.move_to(customers[0], "FR")
    run()
    clock.now += timedelta(minutes=10)
    with system_scope():
        # A run that was made from other files than the day has now.
        stale = RollupRun.objects.create(
            cell=config().cell.id,
            day=date(2026, 9, 17),
            inputs_sha256="other",
            state=RunState.PUBLISHED,
            published_at=clock.now,
        )
        RollupPointer.objects.filter(day=stale.day).update(run=stale)
    assert run() == 0
    (row,) = left_out().values()
    assert row.attempts == 2
    assert "2026-09-17" in row.reason


def test_a_month_that_no_worker_issues_is_overdue(customers, clock):
    clock.now = CLOSED_AT + missing.OVERDUE_AFTER - timedelta(microseconds=1)
    assert unissued(clock) == []
    clock.now = CLOSED_AT + missing.OVERDUE_AFTER
    (month,) = unissued(clock)
    assert (month.month, month.reason) == (MONTH, "no worker has begun to issue it")
    InvoiceMonth.objects.create(month=MONTH)
    assert [month.reason for month in unissued(clock)] == ["its run has not ended"]
    run()
    assert unissued(clock) == []


def gauges():
    with system_scope():
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in metrics.invoice_metrics()
            for sample in family.samples
        }


def test_metrics_count_what_is_missing(customers, vat, clock):
    vat("DE=19")
    world.move_to(customers[0], "FR")
    run()
    assert gauges() == {
        ("freshet_missing_invoices", "impossible"): 1,
        ("freshet_missing_invoices", "usage_incomplete"): 0,
        ("freshet_unissued_months",): 0,
    }
    InvoiceMonth.objects.filter(pk=MONTH).update(finished_at=None, reason="No roll-up.")
    assert gauges()["freshet_unissued_months",] == 1


def test_the_command_lists_what_is_missing(customers, vat, clock, capsys):
    call_command("missing_invoices")
    assert capsys.readouterr().out == "No invoice is missing.\n"
    vat("DE=19")
    world.move_to(customers[2], "FR")
    run()
    call_command("missing_invoices", month="2026-09")
    assert capsys.readouterr().out == (
        f"2026-09 {customers[2]} since 2026-10-04 01:00, attempt 1, next 2026-10-04 01:10 UTC:"
        f" {NO_RATE}\n"
    )
    InvoiceMonth.objects.filter(pk=MONTH).update(finished_at=None, reason="No roll-up.")
    call_command("missing_invoices")
    assert "2026-09 is not issued to anybody: No roll-up." in capsys.readouterr().out
    call_command("missing_invoices", month="2026-08")
    assert capsys.readouterr().out == "No invoice is missing.\n"


def test_who_cannot_be_invoiced_costs_the_others_no_attempt(customers, vat, monkeypatch):
    tried = []

    def issue_counted(drafts, **more):
        tried.append(drafts)
        return issue_drafts(drafts, **more)

    monkeypatch.setattr(issuing, "issue_drafts", issue_counted)
    vat("DE=19")
    world.move_to(customers[1], "FR")
    assert run() == 4
    assert [len(drafts) for drafts in tried] == [4]
