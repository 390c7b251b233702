"""The last invoice of a closed organization: when it is due, over what, and that it is the last."""

from datetime import UTC, datetime, timedelta

import pytest

from billing.receivers import FINAL_INVOICE
from billing.services.closing import issue_final_invoice, issue_final_invoices
from billing.services.voiding import void_invoice
from console.base.accounts.models import Organization
from console.base.accounts.signals import organization_closed
from console.base.common.actor import system_actor
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope, system_scope
from metering.agent.storage import COUNTED_DELETION_MS
from metering.models import JudgedHour
from provisioning.choices import Intent, OperationType
from provisioning.models import Cluster, Operation
from provisioning.models.cluster import RESTORABLE
from tests.billing import world
from tests.billing.world import MONTH, invoices_of, issue_invoices, sign_up

# In the middle of MONTH.
CLOSED_AT = datetime(2026, 9, 14, 15, 30, tzinfo=UTC)
NEXT_DAY = datetime(2026, 9, 15, 1, tzinfo=UTC)


@pytest.fixture
def missing_days():
    """All days after that on which the organization was closed."""
    return [day for day in world.days_of() if day > CLOSED_AT.date()]


@pytest.fixture
def leaving(used, clock):
    """A tenant that was closed in the month, on the day after; later days have no roll-up."""
    clock.now = NEXT_DAY
    with organization_scope(used.id):
        Organization.objects.update(closed_at=CLOSED_AT)
        stopped_ms = int(CLOSED_AT.timestamp() * 1000) + 4_000
        Cluster.objects.update(
            intent=Intent.DELETED, deleted_at=CLOSED_AT, deletions=[[stopped_ms, None]]
        )
    with system_scope():
        JudgedHour.objects.filter(hour__gt=CLOSED_AT).delete()
    return used


def test_it_comes_with_the_roll_up_of_the_last_day(leaving):
    assert issue_final_invoices() == 1
    (invoice,) = invoices_of(leaving.id)
    assert (invoice.state, invoice.month, invoice.total_minor) == ("issued", MONTH, 180)
    early = invoice.closed_early or {}
    assert early["reason"] == "The organization was closed on 2026-09-14."
    assert early["by"] == "freshet"


def test_it_comes_once(leaving, clock):
    assert issue_final_invoice(organization_id=leaving.id)
    assert not issue_final_invoice(organization_id=leaving.id)
    assert issue_final_invoices() == 0
    (invoice,) = invoices_of(leaving.id)
    void_invoice(invoice_id=invoice.pk, reason="a mistake", by="tests")
    # What a person took back, a person issues anew.
    assert issue_final_invoices() == 0


def test_it_waits_for_the_day_to_end(leaving, clock):
    clock.now = CLOSED_AT + timedelta(hours=1)
    assert not issue_final_invoice(organization_id=leaving.id)
    assert invoices_of(leaving.id) == []


@pytest.mark.parametrize("missing_days", [[CLOSED_AT.date()]])
def test_it_waits_for_the_roll_up(leaving):
    assert not issue_final_invoice(organization_id=leaving.id)


def test_it_waits_for_hours_that_are_incomplete(leaving):
    with system_scope():
        hours = JudgedHour.objects.filter(hour=datetime(2026, 9, 3, 3, tzinfo=UTC))
        assert hours.update(complete=False, reason="late") == 1
    assert not issue_final_invoice(organization_id=leaving.id)


def test_it_waits_for_hours_that_nothing_was_heard_of(leaving):
    with system_scope():
        JudgedHour.objects.filter(hour__gte=CLOSED_AT - timedelta(hours=2)).delete()
    assert not issue_final_invoice(organization_id=leaving.id)


def test_it_waits_for_the_last_cluster_to_stop(leaving):
    with organization_scope(leaving.id):
        cluster = Cluster.objects.get()
        operation = Operation.objects.create(
            organization_id=leaving.id,
            cluster=cluster,
            type=OperationType.DELETE_CLUSTER,
            generation=cluster.generation,
        )
    assert not issue_final_invoice(organization_id=leaving.id)
    with organization_scope(leaving.id):
        operation.delete()
    assert issue_final_invoice(organization_id=leaving.id)


def test_it_waits_until_a_cluster_that_was_restored_before_is_gone(leaving, clock):
    """Its second deletion is billed, for as long as it can be restored."""
    assert RESTORABLE // timedelta(milliseconds=1) == COUNTED_DELETION_MS
    with organization_scope(leaving.id):
        (deletion,) = Cluster.objects.get().deletions
        Cluster.objects.update(
            deletions=[[deletion[0] - 7_200_000, deletion[0] - 60_000], deletion]
        )
    assert not issue_final_invoice(organization_id=leaving.id)
    with organization_scope(leaving.id):
        Cluster.objects.update(deletions=[deletion])
    assert issue_final_invoice(organization_id=leaving.id)


def test_an_organization_that_is_not_closed_gets_none(used):
    assert not issue_final_invoice(organization_id=used.id)
    assert issue_final_invoices() == 0


def test_without_a_cluster_there_is_nothing_to_wait_for(other_tenant, clock):
    clock.now = CLOSED_AT
    sign_up(other_tenant.organization)
    with organization_scope(other_tenant.id):
        Organization.objects.update(closed_at=CLOSED_AT)
    assert issue_final_invoice(organization_id=other_tenant.id)
    (invoice,) = invoices_of(other_tenant.id)
    assert invoice.total_minor == 0


@pytest.mark.parametrize("missing_days", [()])
def test_months_behind_the_end_have_no_invoice(used, other_tenant):
    sign_up(other_tenant.organization)
    with organization_scope(other_tenant.id):
        Organization.objects.update(closed_at=datetime(2026, 8, 20, tzinfo=UTC))
    assert issue_invoices().issued == 1
    assert invoices_of(other_tenant.id) == []


def test_the_end_asks_for_it(used):
    with organization_scope(used.id):
        organization_closed.send(sender=Organization, actor=system_actor(used.id))
        entry = OutboxEntry.objects.get(task=FINAL_INVOICE)
    assert entry.arguments == {"organization_id": used.id}
