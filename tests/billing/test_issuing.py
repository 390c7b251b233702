"""Issuing a month: who gets an invoice, over what, and when none is made."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from billing.catalog import GIB
from billing.errors import AlreadyVoid, MonthOpen, NotIssued, UnknownOrganization, UsageChanged
from billing.models import JournalEntry, Posting
from billing.services import issuing
from billing.services.voiding import void_invoice
from console.base.accounts.models import Organization
from console.base.common.errors import NotFound
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from metering.models import JudgedHour, UsageRow
from metering.services.totals import billable_totals
from provisioning.models import Cluster
from tests.billing import world
from tests.billing.world import MONTH, invoices_of, issue_invoices
from tests.metering.console.world import Used, publish_day


def test_a_month_is_rated_and_issued(used):
    report = issue_invoices()
    (invoice,) = invoices_of(used.id)
    assert (report.issued, report.total_minor) == (1, 180)
    assert (invoice.state, invoice.number, invoice.month) == ("issued", "FR-2026-000001", MONTH)
    assert (invoice.subtotal_minor, invoice.tax_minor, invoice.total_minor) == (180, 0, 180)
    assert [(line.meter, line.amount_minor) for line in invoice.lines.all()] == [
        ("ingress_bytes", 40),
        ("egress_bytes", 20),
        ("storage_byte_minutes", 120),
        ("partition_minutes", 0),
    ]
    assert {line.cluster for line in invoice.lines.all()} == {"orders"}


def test_twice_is_once(used):
    issue_invoices()
    again = issue_invoices()
    assert (again.issued, again.already) == (0, 1)
    assert len(invoices_of(used.id)) == 1


def test_who_used_nothing_gets_an_invoice_over_nothing(used, other_tenant):
    world.sign_up(other_tenant.organization)
    assert issue_invoices().issued == 2
    (invoice,) = invoices_of(other_tenant.id)
    assert (invoice.state, invoice.total_minor, invoice.lines.count()) == ("issued", 0, 0)


def test_who_came_later_gets_none(used, other_tenant):
    assert issue_invoices().issued == 1
    assert invoices_of(other_tenant.id) == []
    with pytest.raises(UnknownOrganization):
        issue_invoices(other_tenant.id)


def test_one_organization_alone(used, other_tenant):
    world.sign_up(other_tenant.organization)
    assert issue_invoices(used.id).issued == 1
    assert invoices_of(other_tenant.id) == []


def test_a_month_is_open_for_72_hours_after_its_end(used, clock):
    clock.now = datetime(2026, 10, 4, tzinfo=UTC) - timedelta(microseconds=1)
    with pytest.raises(MonthOpen, match="from 2026-10-04 00:00 UTC"):
        issue_invoices()
    clock.now = datetime(2026, 10, 4, tzinfo=UTC)
    assert issue_invoices().issued == 1


def test_a_month_is_open_while_a_day_is_unpublished(used):
    with system_scope():
        Cluster.objects.update(provisioned_at=datetime(2026, 8, 31, 23, tzinfo=UTC))
    with pytest.raises(MonthOpen, match="2026-08-01"):
        issue_other_month()


def test_a_month_without_a_cluster_needs_no_roll_up(used):
    with system_scope():
        Organization.objects.update(created_at=datetime(2026, 7, 1, tzinfo=UTC))
    assert issue_other_month().issued == 1
    assert {invoice.month: invoice.total_minor for invoice in invoices_of(used.id)} == {
        date(2026, 8, 1): 0
    }


def issue_other_month():
    return issuing.issue_month(month=date(2026, 8, 1), by="tests")


def test_whose_hours_are_missing_is_left_out(used, other_tenant):
    world.sign_up(other_tenant.organization)
    with system_scope():
        hours = JudgedHour.objects.filter(hour=datetime(2026, 9, 9, 9, tzinfo=UTC))
        assert hours.update(complete=False, reason="late") == 1
    report = issue_invoices()
    assert report.left_out == {used.id: 1}
    assert report.issued == 1
    assert invoices_of(used.id) == []
    with pytest.raises(CommandError, match=f"1 organizations are left out.*{used.id}"):
        call_command("issue_invoices", month="2026-09")


def test_closing_early_is_kept_with_the_invoice_and_in_the_audit_log(used, clock):
    clock.now = datetime(2026, 9, 30, tzinfo=UTC)
    issue_invoices(close_early="last invoice of a leaving customer")
    (invoice,) = invoices_of(used.id)
    assert invoice.closed_early == {
        "reason": "last invoice of a leaving customer",
        "by": "tests",
        "days_without_roll_up": [],
        "days_with_newer_files": [],
        "incomplete_hours": 0,
    }
    with organization_scope(used.id):
        entry = AuditEntry.objects.get(action="invoice.issue")
    assert entry.detail["closed_early"] == invoice.closed_early
    assert entry.detail["by"] == "tests"
    assert entry.target_id == invoice.pk


def test_a_month_that_has_not_begun_is_not_even_closed_early(used, clock):
    clock.now = datetime(2026, 8, 31, 23, 59, tzinfo=UTC)
    with pytest.raises(MonthOpen, match="has not begun"):
        issue_invoices(close_early="asked for")


def test_a_roll_up_that_is_published_meanwhile_is_read_again(used, monkeypatch):
    read, times = billable_totals, []

    def publish_while_reading(month, organization_id):
        times.append(month)
        if len(times) == 1:
            publish_day(
                MONTH, [Used(used.id, "cl_aaaaaaaaaaaaaaaaaaaa", "ingress_bytes", 11 * GIB)]
            )
            return iter(())  # what it had read of the run before
        return read(month, organization_id)

    monkeypatch.setattr(issuing, "billable_totals", publish_while_reading)
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    assert (len(times), invoice.total_minor) == (2, 4)
    assert len(row_ids(used)) == 1


def test_roll_ups_that_are_published_all_the_time_are_not_waited_for(used, monkeypatch):
    def publish_while_reading(month, organization_id):
        publish_day(MONTH, [])
        return iter(())

    monkeypatch.setattr(issuing, "billable_totals", publish_while_reading)
    with pytest.raises(UsageChanged):
        issue_invoices()
    assert invoices_of(used.id) == []


def test_what_slipped_past_a_suspending_budget_is_not_billed(capped):
    issue_invoices()
    (invoice,) = invoices_of(capped.id)
    last = invoice.lines.all()[4]
    # Storage of $1.20 used the dollar up, and is billed; nothing was left for traffic.
    assert (invoice.cap_minor, invoice.subtotal_minor, invoice.total_minor) == (120, 120, 120)
    assert (last.kind, last.amount_minor) == ("cap", -60)
    assert last.description == "Beyond the suspending budget, not billed"


def test_drafts_are_shown_and_replaced(used):
    issue_invoices(draft=True)
    issue_invoices(draft=True)
    (draft,) = invoices_of(used.id)
    assert (draft.state, draft.number, draft.total_minor) == ("draft", None, 180)
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    assert (invoice.state, invoice.number) == ("issued", "FR-2026-000001")


def test_the_ledger_follows(used):
    issue_invoices()
    with organization_scope(used.id):
        assert Posting.objects.all().balance() == {"receivable": 180, "revenue": -180}
        assert JournalEntry.objects.get().kind == "invoice"


def test_a_void_invoice_is_taken_back_by_a_credit_note(used):
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    written = void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    assert (written.number, written.total_minor) == ("FRC-2026-000001", -180)
    invoice, note = invoices_of(used.id)
    assert (note.kind, note.credits_id, note.reason) == ("credit_note", invoice.pk, "wrong address")
    assert [line.amount_minor for line in note.lines.all()] == [-40, -20, -120, 0]
    with organization_scope(used.id):
        assert Posting.objects.all().balance() == {"receivable": 0, "revenue": 0}
        assert AuditEntry.objects.filter(action="credit_note.issue").count() == 1


def test_a_void_invoice_is_replaced_only_for_who_is_named(used):
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    assert issue_invoices().issued == 0
    assert issue_invoices(used.id).issued == 1
    assert issue_invoices(used.id).issued == 0
    numbers = [(invoice.number, invoice.revision) for invoice in invoices_of(used.id)]
    assert numbers == [("FR-2026-000001", 1), ("FR-2026-000002", 2), ("FRC-2026-000001", 1)]


def test_what_cannot_be_taken_back(used):
    with pytest.raises(NotFound):
        void_invoice(invoice_id="inv_aaaaaaaaaaaaaaaaaaaa", reason="x", by="tests")
    issue_invoices(draft=True)
    with pytest.raises(NotIssued):
        void_invoice(invoice_id=invoices_of(used.id)[0].pk, reason="x", by="tests")
    issue_invoices()
    note = void_invoice(invoice_id=invoices_of(used.id)[0].pk, reason="x", by="tests")
    for invoice_id in (invoices_of(used.id)[0].pk, note.invoice_id):
        with pytest.raises(AlreadyVoid):
            void_invoice(invoice_id=invoice_id, reason="x", by="tests")


def test_a_later_roll_up_does_not_reach_an_issued_invoice(used):
    issue_invoices()
    before = row_ids(used)
    publish_day(MONTH, [Used(used.id, "cl_aaaaaaaaaaaaaaaaaaaa", "ingress_bytes", 1)])
    assert row_ids(used) == before
    assert len(before) == 5


def row_ids(tenant):
    """The rows that the invoice stands on."""
    (invoice,) = invoices_of(tenant.id)
    with organization_scope(tenant.id):
        rows = UsageRow.objects.filter(
            run_id__in=invoice.basis.runs, granularity="day", billed=True
        )
        return sorted(rows.values_list("pk", flat=True))


def test_the_command_says_what_it_did(used, capsys):
    call_command("issue_invoices", month="2026-09", by="tests")
    assert capsys.readouterr().out.splitlines() == [
        "1 of 1 organizations FR-2026-000001",
        "2026-09: 1 invoices over $1.80; 0 organizations had theirs.",
    ]


@pytest.mark.parametrize("month", ["2026-9", "2026-13", "September"])
def test_the_command_refuses_what_is_no_month(month):
    with pytest.raises(CommandError, match=r"YYYY-MM|month must be"):
        call_command("issue_invoices", month=month)


def test_an_interrupted_run_keeps_what_it_issued(used, other_tenant, monkeypatch):
    world.sign_up(other_tenant.organization)
    monkeypatch.setattr("billing.services.issuing.BATCH", 1)

    def interrupt(report, of):
        if report.issued == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        issue_invoices(on_batch=interrupt)
    report = issue_invoices()
    assert (report.issued, report.already) == (1, 1)
    numbers = {invoices_of(organization.id)[0].number for organization in (used, other_tenant)}
    assert numbers == {"FR-2026-000001", "FR-2026-000002"}
