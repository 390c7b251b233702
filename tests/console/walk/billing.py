"""Routes of billing."""

from __future__ import annotations

from billing.budgets.changes import create_budget
from console.common.actor import Permission, system_actor
from console.common.tenancy import organization_scope
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route

READ, BILLING = Permission.READ, Permission.BILLING
BUDGET = "/api/v1/budgets/<id>"


def a_budget(tenant: Tenant) -> Parameters:
    """A budget that nobody has spent anything of."""
    with organization_scope(tenant.id):
        budget = create_budget(
            actor=system_actor(tenant.id),
            name="walked",
            amount_minor=100,
            thresholds=[50],
            action="notify",
        )
    return {"id": budget.pk}


ROUTES = [
    Route("GET", "/api/v1/budgets", READ),
    Route("POST", "/api/v1/budgets", BILLING, body={"name": "walk", "amount_minor": 1}),
    Route("GET", BUDGET, READ, parameters=a_budget),
    Route("PATCH", BUDGET, BILLING, body={"amount_minor": 2}, parameters=a_budget),
    Route("DELETE", BUDGET, BILLING, parameters=a_budget),
    Route("GET", "/api/v1/costs", READ),
]
