"""What staff enters and sees: payments, refunds, credits, write-offs, and who owes."""

from datetime import timedelta

import pytest

from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.conftest import AT
from tests.billing.receivables.test_payments import pay
from tests.billing.world import invoices_of
from tests.console.browsers import Browser, staff_browser
from tests.console.cases import assert_problem

RECEIVED = "2026-10-03T00:00:00Z"
POSTS = ("payments", "refunds", "credits", "write-offs")


@pytest.fixture
def staff(db):
    """The browser of a member of staff."""
    return staff_browser()


@pytest.fixture
def invoice(owner, collector):
    """An invoice over $1.80, due on 18 October."""
    collector("transfer")
    ledgers.issue_amount(owner, 180)
    return invoices_of(owner)[0]


def posted(staff, name, body, status=201):
    response = staff.post(f"/staff/{name}", body)
    assert response.status_code == status, response.content
    return response.json()


def listed(staff, name, **query):
    response = staff.get(f"/staff/{name}", query=query)
    assert response.status_code == 200, response.content
    return response.json()["items"]


def payment_of(**more):
    return {
        "amount_minor": 100,
        "currency": "USD",
        "external_id": "b-1",
        "received_at": RECEIVED,
        **more,
    }


@pytest.mark.parametrize("name", POSTS)
def test_nobody_else_enters_money(tenant, name):
    member = Browser()
    assert member.sign_in(tenant.owner).status_code == 200
    assert_problem(member.post(f"/staff/{name}", {}), 403, "permission_denied")


def test_a_payment_is_entered_by_its_reference(staff, invoice, owner):
    reference = ledgers.receivable(invoice.pk).reference
    shown = posted(staff, "payments", payment_of(reference=reference))
    assert (shown["organization"]["id"], shown["method"]) == (owner, "transfer")
    assert (shown["amount_minor"], shown["unapplied_minor"]) == (100, 0)
    assert shown["entered_by"].startswith("staff:usr_")
    assert posted(staff, "payments", payment_of(reference=reference))["id"] == shown["id"]
    again = payment_of(reference=invoice.number, amount_minor=1)
    assert_problem(staff.post("/staff/payments", again), 409, "payment_conflict")
    assert [row["id"] for row in listed(staff, "payments", organization_id=owner)] == [shown["id"]]
    (row,) = listed(staff, "receivables")
    assert (row["invoice_id"], row["open_minor"], row["overdue"]) == (invoice.pk, 80, False)
    with organization_scope(owner):
        (entry,) = AuditEntry.objects.filter(action="payment.record")
    assert (entry.actor_kind, entry.target_id) == ("staff", shown["id"])


def test_a_payment_says_whose_it_is_once(staff, invoice, owner):
    for whose in ({}, {"organization_id": owner, "reference": invoice.number}):
        assert_problem(staff.post("/staff/payments", payment_of(**whose)), 422, "validation_failed")
    unknown = payment_of(reference="FR-2026-000077")
    assert_problem(staff.post("/staff/payments", unknown), 404, "not_found")
    unknown = payment_of(organization_id="org_aaaaaaaaaaaaaaaaaaaa")
    assert_problem(staff.post("/staff/payments", unknown), 404, "not_found")
    for wrong in ({"amount_minor": 0}, {"currency": "GBP"}, {"method": "card"}):
        body = payment_of(organization_id=owner, **wrong)
        assert_problem(staff.post("/staff/payments", body), 422, "validation_failed")
    shown = posted(staff, "payments", payment_of(organization_id=owner, method="other"))
    assert shown["method"] == "other"


def test_a_refund_is_entered(staff, invoice, owner):
    payment = pay(owner, 180)
    body = {"payment_id": payment.pk, "amount_minor": 80, "external_id": "r-1", "reason": "x"}
    shown = posted(staff, "refunds", body)
    assert (shown["payment_id"], shown["amount_minor"], shown["made"]) == (payment.pk, 80, True)
    assert posted(staff, "refunds", body)["id"] == shown["id"]
    assert ledgers.states(owner) == {invoice.pk: (80, "open")}
    more = {**body, "amount_minor": 101, "external_id": "r-2"}
    assert_problem(staff.post("/staff/refunds", more), 409, "refund_too_large")
    goodwill = {**body, "external_id": "r-2", "is_goodwill": True}
    assert posted(staff, "refunds", goodwill)["amount_minor"] == 80
    assert ledgers.states(owner) == {invoice.pk: (80, "open")}
    absent = {**body, "payment_id": "pay_aaaaaaaaaaaaaaaaaaaa"}
    assert_problem(staff.post("/staff/refunds", absent), 404, "not_found")


def test_credit_is_granted(staff, invoice, owner):
    body = {
        "organization_id": owner,
        "amount_minor": 200,
        "currency": "USD",
        "reason": "an outage",
        "external_id": "ticket 1",
    }
    shown = posted(staff, "credits", body)
    assert (shown["amount_minor"], shown["unapplied_minor"]) == (200, 20)
    assert posted(staff, "credits", body)["id"] == shown["id"]
    assert_problem(
        staff.post("/staff/credits", {**body, "amount_minor": 1}), 409, "payment_conflict"
    )
    assert ledgers.states(owner) == {invoice.pk: (0, "paid")}


def test_an_invoice_is_written_off(staff, invoice, owner):
    shown = posted(staff, "write-offs", {"invoice_id": invoice.pk, "reason": "insolvent"})
    assert (shown["state"], shown["written_off_minor"]) == ("uncollectible", 180)
    assert listed(staff, "receivables") == []
    (row,) = listed(staff, "receivables", state="uncollectible")
    assert row["number"] == invoice.number
    unknown = {"invoice_id": "inv_aaaaaaaaaaaaaaaaaaaa", "reason": "x"}
    assert_problem(staff.post("/staff/write-offs", unknown), 404, "not_found")


def test_who_owes_and_who_is_late(staff, invoice, owner, other_tenant, clock):
    clock.now = AT + timedelta(days=10)
    ledgers.issue_amount(other_tenant.id, 50)
    clock.now = AT + timedelta(days=15)
    rows = listed(staff, "receivables")
    assert [(row["organization"]["id"], row["overdue"]) for row in rows] == [
        (other_tenant.id, False),
        (owner, True),
    ]
    (late,) = listed(staff, "receivables", overdue="true")
    assert (late["organization"]["id"], late["due_on"]) == (owner, "2026-10-18")
    assert len(listed(staff, "receivables", organization_id=owner)) == 1
    first = staff.get("/staff/receivables", query={"limit": "1"}).json()
    rest = listed(staff, "receivables", limit="1", cursor=first["next_cursor"])
    assert [row["organization"]["id"] for row in rest] == [owner]


def test_without_a_collector_nobody_is_late(staff, invoice, collector, clock):
    clock.now = AT + timedelta(days=15)
    collector("none")
    assert listed(staff, "receivables", overdue="true") == []
    assert [row["overdue"] for row in listed(staff, "receivables")] == [False]


@pytest.mark.parametrize(
    ("received_at", "why"),
    [
        ("9999-12-31T00:00:00Z", "still to come"),
        ("2026-10-06T00:00:00Z", "still to come"),
        ("0001-01-02T00:00:00Z", "0001-01-02 is before 2020-01-01"),
    ],
)
def test_money_came_in_between_the_first_price_and_now(staff, owner, received_at, why):
    body = payment_of(organization_id=owner, received_at=received_at)
    document = assert_problem(staff.post("/staff/payments", body), 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["/received_at"]
    assert why in document["errors"][0]["detail"]
    assert listed(staff, "payments") == []


@pytest.mark.parametrize("name", ["payments", "credits"])
def test_money_is_entered_in_the_currency_of_the_prices(staff, owner, name):
    body = payment_of(organization_id=owner, currency="EUR", reason="an outage")
    body.pop("reason" if name == "payments" else "received_at")
    document = assert_problem(staff.post(f"/staff/{name}", body), 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["/currency"]
    assert "Prices are in USD" in document["errors"][0]["detail"]
    body["currency"] = "USD"
    assert staff.post(f"/staff/{name}", body).status_code == 201


@pytest.mark.parametrize("amount", ["1.000", "100", 10**11 + 1, 1.5])
def test_a_credit_is_a_whole_number_of_cents(staff, owner, amount):
    body = payment_of(organization_id=owner, amount_minor=amount, reason="an outage")
    body.pop("received_at")
    document = assert_problem(staff.post("/staff/credits", body), 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == ["/amount_minor"]
