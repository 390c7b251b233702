"""Routes of billing."""

from __future__ import annotations

from datetime import UTC, date, datetime

from billing.budgets.changes import create_budget
from billing.services import numbers
from billing.services.documents import store_document
from billing.services.issuing import issue_month
from billing.services.store import document_store
from console.base.accounts.models import Organization
from console.base.common.actor import Permission, system_actor
from console.base.common.tenancy import organization_scope
from tests.billing.world import invoices_of
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route

READ, BILLING = Permission.READ, Permission.BILLING
BUDGET = "/api/v1/budgets/<id>"
INVOICE = "/api/v1/invoices/<id>"


def a_budget(tenant: Tenant) -> Parameters:
    """Makes a budget of which nothing is spent."""
    with organization_scope(tenant.id):
        budget = create_budget(
            actor=system_actor(tenant.id),
            name="walked",
            amount_minor=100,
            thresholds=[50],
            action="notify",
        )
    return {"id": budget.pk}


def an_invoice(tenant: Tenant) -> Parameters:
    """Makes an issued invoice without lines, with a document."""
    with organization_scope(tenant.id):
        Organization.objects.update(created_at=datetime(2026, 8, 1, tzinfo=UTC))
    issue_month(month=date(2026, 9, 1), by="walk", organization_id=tenant.id, close_early="to walk")
    numbers.confirm_blocks(document_store())
    (invoice,) = invoices_of(tenant.id)
    store_document(organization_id=tenant.id, invoice_id=invoice.pk, pdf=b"%PDF-1.7")
    return {"id": invoice.pk}


ROUTES = [
    Route("GET", "/api/v1/budgets", READ, parameters=a_budget),
    Route("POST", "/api/v1/budgets", BILLING, body={"name": "walk", "amount_minor": 1}),
    Route("GET", BUDGET, READ, parameters=a_budget),
    Route("PATCH", BUDGET, BILLING, body={"amount_minor": 2}, parameters=a_budget),
    Route("DELETE", BUDGET, BILLING, parameters=a_budget),
    Route("GET", "/api/v1/costs", READ, in_project=True),
    Route("GET", "/api/v1/prices", Permission.BELONG),
    Route("GET", "/api/v1/invoices", BILLING, parameters=an_invoice),
    Route("GET", INVOICE, BILLING, parameters=an_invoice),
    Route("GET", f"{INVOICE}/pdf", BILLING, parameters=an_invoice),
    Route("GET", f"{INVOICE}/evidence", BILLING, parameters=an_invoice),
    Route("GET", "/api/v1/account", Permission.BELONG),
    Route("GET", "/api/v1/payments", BILLING),
    Route("GET", "/api/v1/payment-method", BILLING),
    # Without a collector no cards are taken.
    Route("POST", "/api/v1/payment-method/setup", BILLING, succeeds=frozenset({409})),
    Route("POST", "/api/v1/payment-method/portal", BILLING, succeeds=frozenset({409})),
    Route("POST", "/api/v1/payment-method/advance", BILLING, succeeds=frozenset({409})),
    Route(
        "POST", f"{INVOICE}/pay", BILLING, body={}, parameters=an_invoice, succeeds=frozenset({409})
    ),
    # What Stripe did not sign is refused.
    Route("POST", "/api/v1/webhooks/stripe", None, body={}, succeeds=frozenset({400})),
    Route("GET", "/api/v1/billing-details", BILLING),
    Route("PATCH", "/api/v1/billing-details", BILLING, body={"legal_name": "Acme GmbH"}),
]
