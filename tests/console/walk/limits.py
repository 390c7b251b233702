"""Routes of limits."""

from __future__ import annotations

from console.base.common.actor import Permission, system_actor
from console.base.common.tenancy import organization_scope
from console.base.limits import services
from tests.console.factories import Tenant
from tests.console.walk.routes import Parameters, Route

NEW_REQUEST = {"limit": "clusters", "wanted": 1000, "reason": "walk"}


def a_request(tenant: Tenant) -> Parameters:
    """Makes an open request."""
    with organization_scope(tenant.id):
        request = services.request_limit(
            actor=system_actor(tenant.id), limit="api_keys", requested=1000, reason="walked"
        )
    return {"id": request.pk}


ROUTES = [
    Route("GET", "/api/v1/limits", Permission.READ),
    Route("GET", "/api/v1/limit-requests", Permission.READ, parameters=a_request),
    Route("POST", "/api/v1/limit-requests", Permission.MANAGE, body=NEW_REQUEST),
    Route("GET", "/api/v1/limit-requests/<id>", Permission.READ, parameters=a_request),
]
