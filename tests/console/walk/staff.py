"""Routes of staff, which no API key may call."""

from __future__ import annotations

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


# What staff enters about money; the bodies are the examples of the OpenAPI file.
ENTERED = ("credits", "payments", "refunds", "write-offs")


ROUTES = [
    *(Route("GET", f"/api/v1/staff/{name}", None, session=True, staff=True) for name in LISTS),
    *(Route("POST", f"/api/v1/staff/{name}", None, session=True, staff=True) for name in ENTERED),
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
