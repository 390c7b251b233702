"""Who cannot be invoiced is left out, with the reason; all others get their invoices."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from billing import tasks
from billing.catalog import GIB
from billing.errors import NumbersDiverged
from billing.models import Invoice, NumberBlock
from billing.parties import TaxUnknown
from billing.services import numbers, writing
from billing.services.closing import issue_final_invoice, issue_final_invoices
from billing.services.issuing import issue_month
from billing.services.store import document_store
from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope, system_scope
from metering.models import JudgedHour
from tests.billing import world
from tests.billing.world import MONTH, invoices_of, issue_invoices
from tests.metering.console.world import Used, publish_day

NO_RATE = "billing.vat_rates names no rate for FR. Add it, such as DE=19."


def make_customers(count):
    """Ids of organizations that were there in the month, in the order of their invoices."""
    organizations = [Organization(name=f"Customer {number}") for number in range(count)]
    for organization in organizations:
        with organization_scope(organization.pk):
            organization.save(force_insert=True)
        world.sign_up(organization)
    return sorted(organization.pk for organization in organizations)


@pytest.fixture
def customers(db, clock):
    """Seven customers of a month in which nobody used anything."""
    world.publish_month([])
    return make_customers(7)


def places(customers):
    """The last digits of the numbers that customers have, by their places."""
    with system_scope():
        known = dict(Invoice.objects.values_list("organization_id", "sequence"))
    return {place: known[customer] for place, customer in enumerate(customers) if customer in known}


def test_a_country_without_a_rate_leaves_its_customer_out_alone(customers, vat):
    vat("DE=19")
    world.move_to(customers[3], "FR")
    report = issue_invoices()
    assert report.failed == {customers[3]: NO_RATE}
    assert (report.issued, report.already) == (6, 0)
    assert places(customers) == {0: 1, 1: 2, 2: 3, 4: 4, 5: 5, 6: 6}
    # Once there is a rate the customer follows, with the next number.
    vat("DE=19", "FR=20")
    report = issue_invoices()
    assert (report.issued, report.already, report.failed) == (1, 6, {})
    assert places(customers)[3] == 7


@pytest.mark.django_db(transaction=True)
def test_what_postgresql_refuses_of_one_undoes_nothing_of_the_others(customers, caplog):
    # Their totals have more than 64 bits, which shows when the whole batch is written.
    refused = [customers[1], customers[5]]
    publish_day(
        MONTH,
        [
            Used(organization_id, "cl_a", "ingress_bytes", 10**20 * GIB)
            for organization_id in refused
        ],
    )
    report = issue_invoices()
    assert sorted(report.failed) == refused
    for reason in report.failed.values():
        assert reason.startswith("DataError: ")
        assert "\n" not in reason
    assert (report.issued, report.already) == (5, 0)
    assert places(customers) == {0: 1, 2: 2, 3: 3, 4: 4, 6: 5}
    logged = [record for record in caplog.records if record.message == "invoice.failed"]
    assert [record.organization for record in logged] == refused
    assert all(record.exc_info for record in logged)


def test_a_meter_without_a_price_leaves_its_customer_out_alone(customers):
    publish_day(MONTH, [Used(customers[0], "cl_a", "dreams", 1)])
    report = issue_invoices()
    assert report.failed == {customers[0]: "UnpricedMeter: dreams"}
    assert report.issued == 6


def test_drafts_of_the_others_are_shown(customers, vat):
    vat("DE=19")
    world.move_to(customers[6], "FR")
    report = issue_invoices(draft=True)
    assert (report.issued, list(report.failed)) == (6, [customers[6]])
    with system_scope():
        assert Invoice.objects.filter(state="draft").count() == 6


def test_progress_reaches_its_end(customers, vat):
    vat("DE=19")
    world.move_to(customers[0], "FR")
    seen = []
    issue_invoices(on_batch=lambda report, of: seen.append((report.issued, len(report.failed), of)))
    assert seen == [(6, 1, 7)]


def test_who_is_named_fails_with_the_reason(customers, vat):
    vat("DE=19")
    world.move_to(customers[0], "FR")
    with pytest.raises(TaxUnknown):
        issue_invoices(customers[0])
    with pytest.raises(CommandError, match=NO_RATE):
        call_command("issue_invoices", month="2026-09", organization=customers[0])


def test_a_store_that_is_away_fails_the_run(customers, documents):
    documents.write_text("no folder")
    with pytest.raises(OSError, match="documents"):
        issue_invoices()
    assert places(customers) == {}


@pytest.mark.django_db(transaction=True)
def test_numbers_that_diverged_fail_the_run(customers, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_confirm_on_commit", lambda block_ids, store: None)
        issue_month(month=MONTH, by="tests", organization_id=customers[0])
    numbers._settle_block(document_store(), NumberBlock.objects.get().key, numbers.ABANDONED)
    with pytest.raises(NumbersDiverged):
        issue_invoices()
    assert places(customers) == {0: 1}


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_fails_the_run(customers, monkeypatch):
    monkeypatch.setattr("billing.services.issuing.BATCH", 1)

    def cut(report, of):
        with suppress(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(OperationalError):
        issue_invoices(on_batch=cut)
    connection.close()
    assert places(customers) == {0: 1}


def test_the_command_names_each_with_the_reason(used, other_tenant, customers, vat, capsys):
    world.publish_month([])
    vat("DE=19")
    for customer in customers[1:3]:
        world.move_to(customer, "FR")
    with system_scope():
        hours = JudgedHour.objects.filter(hour=datetime(2026, 9, 9, 9, tzinfo=UTC))
        assert hours.update(complete=False, reason="late") == 1
    with pytest.raises(CommandError) as raised:
        call_command("issue_invoices", month="2026-09", by="tests")
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        f"{used.id} is left out: 1 hours of its usage are incomplete",
        f"{customers[1]} is left out: {NO_RATE}",
        f"{customers[2]} is left out: {NO_RATE}",
    ]
    assert "7 of 7 organizations FR-2026-000005" in shown.out
    assert raised.value.returncode == 1
    assert f"2 organizations are left out, as their invoices cannot be made: {customers[1]}" in str(
        raised.value
    )
    # With all of them invoiced it ends well.
    vat("DE=19", "FR=20")
    with system_scope():
        JudgedHour.objects.filter(complete=False).update(complete=True)
    call_command("issue_invoices", month="2026-09", by="tests")
    assert capsys.readouterr().err == ""


@pytest.fixture
def leaving(customers, vat):
    """Three closed organizations without a cluster; there is no rate for the second one."""
    closed = customers[:3]
    vat("DE=19")
    world.move_to(closed[1], "FR")
    for place, organization in enumerate(closed):
        with organization_scope(organization):
            Organization.objects.filter(pk=organization).update(
                closed_at=datetime(2026, 9, 14, place, tzinfo=UTC)
            )
    return closed


def test_a_last_invoice_that_fails_keeps_nobody_elses_waiting(leaving, caplog):
    assert issue_final_invoices() == 2
    assert [len(invoices_of(organization_id)) for organization_id in leaving] == [1, 0, 1]
    (logged,) = [record for record in caplog.records if record.message == "final_invoice.failed"]
    assert logged.organization == leaving[1]
    assert NO_RATE in str(logged.exc_info[1])
    # Asked for by itself its task fails, which the metrics of tasks count.
    with pytest.raises(TaxUnknown):
        issue_final_invoice(organization_id=leaving[1])
    assert tasks.issue_final_invoices.apply().state == "SUCCESS"
    single = tasks.issue_final_invoice.apply(kwargs={"organization_id": leaving[1]})
    assert single.state == "FAILURE"
