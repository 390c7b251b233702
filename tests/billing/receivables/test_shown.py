"""Invoices over the API: their state, what is open, until when, and what paid them."""

from datetime import timedelta

import pytest

from billing.services import numbers
from billing.services.store import document_store
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.receivables.test_credits import grant, write_off
from tests.billing.receivables.test_payments import pay
from tests.billing.receivables.test_refunds import dispute
from tests.console.queries import count_queries


@pytest.fixture
def invoice(owner, collector):
    """An invoice over $1.80 that is to be paid by transfer until 18 October."""
    collector("transfer")
    return issued(owner, 180)


def issued(owner, amount, number=0):
    invoice = ledgers.issue_amount(owner, amount, ledgers.month_number(number))
    numbers.confirm_blocks(document_store())
    return invoice


def shown(api, invoice):
    response = api().get(f"/invoices/{invoice}")
    assert response.status_code == 200, response.content
    return response.json()


def test_it_is_issued_then_partly_then_wholly_paid(api, invoice, owner, clock):
    first = shown(api, invoice)
    assert (first["state"], first["open_minor"], first["due_on"]) == ("issued", 180, "2026-10-18")
    assert first["reference"] == ledgers.receivable(invoice).reference
    assert (first["paid_at"], first["payments"]) == (None, [])
    payment = pay(owner, 100)
    clock.now = AT + timedelta(hours=1)
    grant(owner, 30)
    partly = shown(api, invoice)
    assert (partly["state"], partly["open_minor"]) == ("issued", 50)
    clock.now = AT + timedelta(days=2)
    pay(owner, 80, "bank-2")
    last = shown(api, invoice)
    assert (last["state"], last["open_minor"], last["paid_at"]) == (
        "paid",
        0,
        "2026-10-06T01:00:00Z",
    )
    assert [(part["method"], part["amount_minor"]) for part in last["payments"]] == [
        ("transfer", 100),
        ("credit", 30),
        ("transfer", 50),
    ]
    assert last["payments"][0]["id"] == payment.pk
    (listed,) = api().get("/invoices").json()["items"]
    assert (listed["state"], listed["open_minor"]) == ("paid", 0)
    assert "payments" not in listed


def test_it_is_overdue_the_day_after_it_was_due(api, invoice, collector, clock):
    clock.now = AT + timedelta(days=14)
    assert shown(api, invoice)["state"] == "issued"
    clock.now = AT + timedelta(days=15)
    assert shown(api, invoice)["state"] == "overdue"
    collector("none")
    assert shown(api, invoice)["state"] == "issued"


def test_it_is_uncollectible_and_void(api, invoice, owner):
    write_off(owner, invoice)
    assert (shown(api, invoice)["state"], shown(api, invoice)["open_minor"]) == ("uncollectible", 0)
    ledgers.void(invoice)
    numbers.confirm_blocks(document_store())
    assert shown(api, invoice)["state"] == "void"
    states = [(row["kind"], row["state"]) for row in api().get("/invoices").json()["items"]]
    assert sorted(states) == [("credit_note", "issued"), ("invoice", "void")]


def test_a_disputed_payment_is_shown_as_it_was(api, invoice, owner):
    payment = pay(owner, 180, method="card")
    dispute(owner, payment, 180)
    (part,) = shown(api, invoice)["payments"]
    assert (part["id"], part["method"], part["amount_minor"]) == (payment.pk, "card", 180)
    assert shown(api, invoice)["state"] == "paid"


def test_without_a_collector_it_is_issued_as_ever(api, owner):
    first = shown(api, issued(owner, 180))
    assert (first["state"], first["open_minor"], first["due_on"]) == ("issued", 180, None)
    assert first["reference"] == ""
    nothing = shown(api, issued(owner, 0, 1))
    assert (nothing["state"], nothing["open_minor"], nothing["payments"]) == ("issued", 0, [])


def test_a_list_costs_the_same_with_payments(api, invoice, owner):
    before = count_queries(lambda: api().get("/invoices"))
    pay(owner, 100)
    issued(owner, 50, 1)
    assert count_queries(lambda: api().get("/invoices")) == before
