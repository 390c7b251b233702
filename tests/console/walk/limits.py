"""Routes of limits."""

from __future__ import annotations

from console.base.common.actor import Permission, system_actor
from console.base.common.tenancy import organization_scope
from console.base.limits import services
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route

WANTED = {"limit": "clusters", "wanted": 1000, "reason": "walk"}


def a_request(tenant: Tenant) -> Parameters:
    """An open request."""
    with organization_scope(tenant.id):
        made = services.request_limit(
            actor=system_actor(tenant.id), limit="api_keys", wanted=1000, reason="walked"
        )
    return {"id": made.pk}


ROUTES = [
    Route("GET", "/api/v1/limits", Permission.READ),
    Route("GET", "/api/v1/limit-requests", Permission.READ, parameters=a_request),
    Route("POST", "/api/v1/limit-requests", Permission.MANAGE, body=WANTED),
    Route("GET", "/api/v1/limit-requests/<id>", Permission.READ, parameters=a_request),
]
