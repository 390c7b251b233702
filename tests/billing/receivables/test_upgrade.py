"""Receivables of invoices that were issued before there were any."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from billing.models import Receivable
from billing.receivables.services import reference_of
from billing.services import writing
from console.base.common.tenancy import system_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.receivables.test_payments import pay
from tests.billing.world import invoices_of

MIGRATION = import_module("billing.migrations.0009_guards_of_money")


@pytest.fixture
def before(owner, other_tenant, clock, monkeypatch):
    """Two organizations with invoices as an earlier version left them, one of them void."""
    with monkeypatch.context() as earlier:
        earlier.setattr(writing, "open_receivables", lambda **_: None)
        earlier.setattr(writing, "close_by_credit_note", lambda **_: None)
        paid, void, nothing = (
            ledgers.issue_amount(owner, amount, ledgers.month_number(number))
            for number, amount in enumerate((100, 70, 0))
        )
        foreign = ledgers.issue_amount(other_tenant.id, 40)
        clock.now = AT + timedelta(days=1)
        ledgers.void(void)
    return paid, void, nothing, foreign


def upgrade():
    with connection.schema_editor(atomic=False) as editor:
        MIGRATION.open_issued(apps, editor)


def test_what_was_issued_is_open_and_what_is_void_is_not(before, owner, other_tenant, clock):
    paid, void, nothing, foreign = before
    clock.now = AT + timedelta(days=400)
    upgrade()
    ledgers.check_now()
    assert ledgers.states(owner) == {paid: (100, "open"), void: (0, "void")}
    assert ledgers.states(other_tenant.id) == {foreign: (40, "open")}
    with system_scope():
        assert not Receivable.objects.filter(pk=nothing).exists()
        assert set(Receivable.objects.values_list("due_on", flat=True)) == {None}
    assert ledgers.receivable(void).settled_at == AT + timedelta(days=1)
    number = next(row.number for row in invoices_of(owner) if row.pk == paid)
    assert ledgers.receivable(paid).reference == reference_of(str(number))
    for organization_id in (owner, other_tenant.id):
        ledgers.require_ledger_agrees(organization_id)
    pay(owner, 100)
    assert ledgers.states(owner)[paid] == (0, "paid")


def test_nothing_is_overdue_by_the_upgrade(before, collector, clock):
    collector("transfer")
    clock.now = AT + timedelta(days=400)
    upgrade()
    with system_scope():
        due = set(Receivable.objects.values_list("due_on", flat=True))
        assert due == {(AT + timedelta(days=414)).date()}
        assert not Receivable.objects.overdue(clock.now.date()).exists()
