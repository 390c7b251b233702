"""Routes of staff, which no API key may call."""

from __future__ import annotations

from collections.abc import Callable

from billing.receivables.services import record_payment
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from tests.console.factories import Tenant
from tests.console.walk.limits import a_request
from tests.console.walk.provisioning import make_cluster
from tests.console.walk.routes import Parameters, Route

LISTS = (
    *("cells", "clusters", "break-glass", "operations", "incidents", "limit-requests"),
    *("invoice-months", "missing-invoices"),
    *("payment-attempts", "payments", "receivables", "reconciliation", "reconciliation/runs"),
)
REQUEST = "/api/v1/staff/limit-requests/<id>"


def a_cluster(tenant: Tenant) -> Parameters:
    """Makes a cluster."""
    return {"id": make_cluster(tenant).pk}


def an_organization(tenant: Tenant) -> Parameters:
    """Names the tenant in a body."""
    return {"organization": tenant.id}


def a_payment(tenant: Tenant) -> Parameters:
    """Makes a payment that pays no invoice."""
    with organization_scope(tenant.id):
        payment = record_payment(
            organization_id=tenant.id,
            method="transfer",
            amount_minor=100,
            currency="USD",
            external_id="walk-1",
            received_at=now(),
            by="walk",
            invoice_ids=None,
        )
    return {"payment": payment.pk}


AMOUNT = {"amount_minor": 50, "external_id": "walk-2"}
PAYMENT = {"organization_id": "<organization>", "currency": "USD", **AMOUNT}
# What staff enters about money: its body, and what that names.
ENTERED: dict[str, tuple[dict[str, object], Callable[[Tenant], Parameters]]] = {
    "credits": ({**PAYMENT, "reason": "walk"}, an_organization),
    "payments": ({**PAYMENT, "received_at": "2026-11-20T12:00:00Z"}, an_organization),
    "refunds": ({"payment_id": "<payment>", "reason": "walk", **AMOUNT}, a_payment),
}


ROUTES = [
    *(Route("GET", f"/api/v1/staff/{name}", None, session=True, staff=True) for name in LISTS),
    *(
        Route(
            *("POST", f"/api/v1/staff/{name}", None, body),
            parameters=parameters,
            session=True,
            staff=True,
        )
        for name, (body, parameters) in ENTERED.items()
    ),
    # Nothing is owed here: `tests/billing/receivables/test_staff.py` writes off what is.
    Route(
        *("POST", "/api/v1/staff/write-offs", None),
        session=True,
        staff=True,
        succeeds=frozenset({422}),
    ),
    Route(
        "POST",
        "/api/v1/staff/clusters/<id>:break-glass",
        None,
        body={"reason": "Walked through, with a reason."},
        parameters=a_cluster,
        session=True,
        staff=True,
    ),
    Route(
        "POST", f"{REQUEST}:grant", None, body={}, parameters=a_request, session=True, staff=True
    ),
    Route(
        "POST",
        f"{REQUEST}:refuse",
        None,
        body={"answer": "no"},
        parameters=a_request,
        session=True,
        staff=True,
    ),
]
