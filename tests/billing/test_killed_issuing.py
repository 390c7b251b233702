"""A process that issues a month and is killed in the middle: the next one goes on where it was."""

import os
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from django.db import connections

from billing.models import Invoice, InvoiceMonth, MissingInvoice, NumberBlock
from billing.services import numbers
from billing.services.months import issue_due_months
from billing.services.store import document_store
from console.base.common.tenancy import system_scope
from tests.billing import world
from tests.billing.killed_issuing import BATCH, BATCHES_BEFORE
from tests.billing.test_left_out import make_customers
from tests.settings import HOME

ROOT = Path(__file__).parents[2]
CUSTOMERS = 9
# What is issued before it dies, by the point at which it does.
ISSUED = {
    "reserved": BATCH * BATCHES_BEFORE,
    "written": BATCH * BATCHES_BEFORE,
    "committed": BATCH * (BATCHES_BEFORE + 1),
}


def issue_in_a_process(point, documents):
    """Issues the months that are due in a process of its own; returns its exit code."""
    database = connections["default"].settings_dict
    return subprocess.run(
        [sys.executable, "-m", "tests.billing.killed_issuing", point],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "FRESHET_HOME": str(HOME),
            "FRESHET_DATABASE_HOST": str(database["HOST"]),
            "FRESHET_DATABASE_NAME": str(database["NAME"]),
            "FRESHET_BILLING_DOCUMENTS": str(documents),
            "FRESHET_BILLING_SELLER_COUNTRY": "DE",
            "FRESHET_BILLING_SELLER_ADDRESS": "Street 1",
            "FRESHET_BILLING_SELLER_VAT_ID": "DE111111111",
            "FRESHET_BILLING_VAT_RATES": "DE=19",
        },
        check=False,
    ).returncode


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "point",
    [
        "written",
        pytest.param("reserved", marks=pytest.mark.full),
        pytest.param("committed", marks=pytest.mark.full),
    ],
)
def test_killed_in_the_middle_it_goes_on_and_issues_nobody_twice(point, documents, clock, vat):
    world.publish_month([])
    InvoiceMonth.objects.create(month=date(2026, 8, 1), finished_at=clock.now)
    customers = make_customers(CUSTOMERS)
    vat("DE=19")
    world.move_to(customers[1], "FR")
    # The first batch has one invoice less, since its second customer is left out.
    before = ISSUED[point] - 1
    assert issue_in_a_process(point, documents) == -signal.SIGKILL
    with system_scope():
        assert Invoice.objects.count() == before
        first = dict(Invoice.objects.values_list("organization_id", "number"))
        assert MissingInvoice.objects.count() == 1
    assert InvoiceMonth.objects.get(pk=world.MONTH).finished_at is None

    assert issue_due_months() == CUSTOMERS - 1 - before
    numbers.confirm_blocks(document_store())
    with system_scope():
        invoices = Invoice.objects.order_by("sequence")
        assert list(invoices.values_list("sequence", flat=True)) == list(range(1, CUSTOMERS))
        known = dict(invoices.values_list("organization_id", "number"))
        assert sorted(known) == sorted({*customers} - {customers[1]})
        # What was issued keeps its number, and people see all of it.
        assert {owner: known[owner] for owner in first} == first
        assert invoices.published().count() == CUSTOMERS - 1
        (row,) = MissingInvoice.objects.all()
    assert (row.organization_id, row.attempts) == (customers[1], 2)
    assert not NumberBlock.objects.filter(confirmed_at=None).exists()
    assert InvoiceMonth.objects.get(pk=world.MONTH).finished_at == clock.now
    assert issue_due_months() == 0
