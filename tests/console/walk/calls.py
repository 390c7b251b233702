"""Calls a route, and makes a client that may call it."""

from __future__ import annotations

from typing import Any

from console.base.accounts.models import User
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient
from tests.console.factories import Tenant, with_second_factor
from tests.console.walk.routes import Parameters, Route


# Django's test response has no public type.
def call_route(route: Route, client: ApiClient, parameters: Parameters) -> Any:  # noqa: ANN401
    """Sends one request to a route; returns Django's response."""
    if not route.path.startswith("/api/v1"):
        return client.client.get(route.address({"var": ""}))
    address = route.address(parameters).removeprefix("/api/v1")
    body = route.filled_body(parameters)
    return client.request(route.method, address, body, query=dict(route.query))


def client_of(route: Route, tenant: Tenant) -> ApiClient:
    """Returns a client of the tenant's owner that may call a route."""
    if not route.session:
        return ApiClient(tenant.key)
    if route.staff:
        User.objects.filter(pk=tenant.owner.pk).update(is_staff=True)
    client = signed_in(tenant.owner)
    if route.staff:
        with_second_factor(tenant.owner)
    return client
