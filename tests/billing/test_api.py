"""Prices, invoices and billing details over the API."""

import io
import zipfile

import pytest

from billing.models import BillingDetails
from billing.services import numbers
from billing.services.documents import store_document
from billing.services.store import document_store
from billing.services.voiding import void_invoice
from console.base.common.actor import Role
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from metering.models import UsageRow
from tests.billing.world import invoices_of, issue_invoices
from tests.console.cases import assert_problem
from tests.console.queries import count_queries


@pytest.fixture
def invoice(used):
    """An issued invoice."""
    issue_invoices()
    return invoices_of(used.id)[0]


def test_prices_are_the_catalogue(api, tenant):
    document = api(tenant.keys[Role.VIEWER]).get("/prices").json()
    assert (document["currency"], document["valid_from"]) == ("USD", "2020-01-01")
    assert document["prices"][0] == {
        "meter": "ingress_bytes",
        "name": "Data in",
        "unit_price": "0.04",
        "unit": "GiB",
        "free_units": 10,
        "free_unit": "GiB",
        "base_unit": "byte",
    }
    assert [price["unit_price"] for price in document["prices"]] == [
        "0.04",
        "0.04",
        "0.06",
        "0.0005",
    ]


def test_invoices_are_listed_without_lines(api, invoice):
    (listed,) = api().get("/invoices").json()["items"]
    assert listed["id"] == invoice.pk
    assert (listed["state"], listed["number"]) == ("issued", "FR-2026-000001")
    assert (listed["month"], listed["currency"], listed["total_minor"]) == ("2026-09", "USD", 180)
    assert listed["sha256"] is None
    assert "lines" not in listed


def test_an_invoice_names_the_rows_behind_each_line(api, invoice):
    shown = api().get(f"/invoices/{invoice.pk}").json()
    line = shown["lines"][0]
    assert (line["meter"], line["cluster"], line["unit"]) == ("ingress_bytes", "orders", "byte")
    assert (line["quantity"], line["free_quantity"]) == (str(20 * 2**30), str(10 * 2**30))
    assert (line["unit_price"], line["price_unit"], line["amount_minor"]) == ("0.04", "GiB", 40)
    with organization_scope(invoice.organization_id):
        for shown_line in shown["lines"]:
            rows = UsageRow.objects.filter(pk__in=shown_line["usage_row_ids"])
            assert sum(int(row.quantity) for row in rows) == int(shown_line["quantity"])
    assert len(line["usage_row_ids"]) == 2
    assert shown["customer"]["name"] == "Acme"
    assert shown["tax"] == {
        "category": "O",
        "percent": "0",
        "reason": "The seller is not registered for VAT.",
    }


def test_a_month_can_be_asked_for(api, invoice):
    def listed(month):
        return len(api().get("/invoices", query={"month": month}).json()["items"])

    assert (listed("2026-09"), listed("2026-08")) == (1, 0)
    assert_problem(api().get("/invoices", query={"month": "2026-13"}), 422, "validation_failed")


def test_a_void_invoice_and_its_credit_note_name_each_other(api, invoice):
    void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    numbers.confirm_blocks(document_store())
    note = invoices_of(invoice.organization_id)[-1]
    shown = api().get(f"/invoices/{invoice.pk}").json()
    assert (shown["state"], shown["credit_note_id"]) == ("void", note.pk)
    shown = api().get(f"/invoices/{note.pk}").json()
    assert (shown["state"], shown["credits_id"]) == ("issued", invoice.pk)
    assert (shown["kind"], shown["total_minor"]) == ("credit_note", -180)


def test_what_is_not_on_record_is_shown_to_nobody(api, invoice):
    void_invoice(invoice_id=invoice.pk, reason="wrong address", by="tests")
    assert [item["id"] for item in api().get("/invoices").json()["items"]] == [invoice.pk]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.DEVELOPER])
@pytest.mark.parametrize("path", ["", "/{id}", "/{id}/pdf", "/{id}/evidence"])
def test_invoices_are_not_for_everybody(api, tenant, invoice, role, path):
    address = "/invoices" + path.format(id=invoice.pk)
    assert_problem(api(tenant.keys[role]).get(address), 403, "permission_denied")


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN, Role.BILLING])
def test_who_pays_reads_invoices(api, tenant, invoice, role):
    assert api(tenant.keys[role]).get(f"/invoices/{invoice.pk}").status_code == 200


def test_the_document_comes_when_it_is_made(api, invoice):
    address = f"/invoices/{invoice.pk}/pdf"
    headers = {"Accept": "application/pdf"}
    pending = api().get(address, headers=headers)
    assert_problem(pending, 409, "document_pending")
    assert pending["Retry-After"] == "5"
    row = store_document(
        organization_id=invoice.organization_id, invoice_id=invoice.pk, pdf=b"%PDF-1.7 x"
    )
    response = api().get(address, headers=headers)
    assert (response.status_code, response.content) == (200, b"%PDF-1.7 x")
    assert response["Content-Type"] == "application/pdf"
    assert 'filename="FR-2026-000001.pdf"' in response["Content-Disposition"]
    assert api().get(f"/invoices/{invoice.pk}").json()["sha256"] == row.sha256


def test_the_evidence_is_a_zip(api, invoice):
    response = api().get(f"/invoices/{invoice.pk}/evidence")
    assert (response.status_code, response["Content-Type"]) == (200, "application/zip")
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert {"invoice.json", "recompute.py", "usage_rows.csv"} <= set(archive.namelist())


def test_a_draft_is_shown_and_has_neither(api, used):
    issue_invoices(draft=True)
    (draft,) = api().get("/invoices").json()["items"]
    assert (draft["state"], draft["number"], draft["issued_at"]) == ("draft", None, None)
    for what in ("pdf", "evidence"):
        assert_problem(api().get(f"/invoices/{draft['id']}/{what}"), 409, "not_issued")


def test_a_list_costs_the_same_whatever_is_on_it(api, invoice):
    before = count_queries(lambda: api().get("/invoices"))
    void_invoice(invoice_id=invoice.pk, reason="x", by="tests")
    numbers.confirm_blocks(document_store())
    assert count_queries(lambda: api().get("/invoices")) == before


DETAILS = {
    "legal_name": "Acme Payments GmbH",
    "address": ["Lindenallee 3", "10115 Berlin"],
    "country": "DE",
    "vat_id": "DE987654328",
    "email": "invoices@acme.example",
}


def test_billing_details_are_on_the_next_invoice(api, used):
    empty = api().get("/billing-details")
    assert (empty.json()["legal_name"], empty["ETag"]) == ("", '"1"')
    changed = api().patch("/billing-details", DETAILS, headers={"If-Match": '"1"'})
    assert changed.json() == {**DETAILS, "generation": 2}
    with organization_scope(used.id):
        entry = AuditEntry.objects.get(action="billing_details.update")
    assert entry.detail["legal_name"] == {"from": "", "to": DETAILS["legal_name"]}
    assert entry.detail["address"] == {"from": [], "to": DETAILS["address"]}
    stale = api().patch("/billing-details", {"vat_id": ""}, headers={"If-Match": '"1"'})
    assert_problem(stale, 412, "precondition_failed")
    issue_invoices()
    (invoice,) = invoices_of(used.id)
    assert invoice.customer["name"] == "Acme Payments GmbH"
    assert invoice.customer["address"] == ["Lindenallee 3", "10115 Berlin"]
    api().patch("/billing-details", {"legal_name": "Other"})
    assert invoices_of(used.id)[0].customer["name"] == "Acme Payments GmbH"


@pytest.mark.parametrize(
    "change",
    [
        {"country": "Germany"},
        {"country": "de"},
        {"country": "ZZ"},
        {"country": "EL"},
        {"country": "UK"},
        {"vat_id": "x"},
        {"vat_id": "DE987654328"},
        {"vat_id": "DE987654321", "country": "DE"},
        {"vat_id": "DE987654328", "country": "FR"},
        {"address": ["a"] * 9},
        {"legal_name": "a" * 201},
        {"email": "nobody"},
    ],
)
def test_bad_billing_details_are_refused(api, tenant, change):
    document = assert_problem(api().patch("/billing-details", change), 422, "validation_failed")
    assert document["errors"][0]["pointer"].startswith(f"/{next(iter(change))}")


def test_details_of_before_they_were_checked_can_be_changed_one_by_one(api, tenant):
    with organization_scope(tenant.id):
        BillingDetails.objects.create(pk=tenant.id, country="FR", vat_id="XX00")
    assert api().patch("/billing-details", {"legal_name": "Acme"}).status_code == 200
    same = {"country": "FR", "vat_id": "XX00", "legal_name": "Acme 2"}
    assert api().patch("/billing-details", same).status_code == 200
    assert_problem(api().patch("/billing-details", {"country": "IT"}), 422, "validation_failed")
    changed = {"vat_id": "FR40303265045"}
    assert api().patch("/billing-details", changed).json()["vat_id"] == changed["vat_id"]


@pytest.mark.parametrize(("vat_id", "category"), [("XX00", "S"), ("FR40303265045", "AE")])
def test_a_wrong_vat_id_of_before_frees_from_no_tax(used, vat, vat_id, category):
    vat("DE=19", "FR=20")
    with organization_scope(used.id):
        BillingDetails.objects.create(pk=used.id, country="FR", vat_id=vat_id)
    issue_invoices()
    invoice = invoices_of(used.id)[0]
    assert invoice.tax["category"] == category
    assert bool(invoice.tax_minor) == (category == "S")
