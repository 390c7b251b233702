"""Routes that belong to no application."""

from __future__ import annotations

from console.base.common.actor import Permission
from tests.console.walk.routes import Route

ROUTES = [
    Route("GET", "/healthz", None),
    # 503 where a part does not answer, which depends on the machine.
    Route("GET", "/readyz", None, succeeds=frozenset({200, 503})),
    Route(
        "GET", "/api/v1/watch", Permission.READ, query={"read": "2:/api/v1/alerts"}, in_project=True
    ),
    # A browser has to show the token that the service's start printed.
    Route("GET", "/api/v1/local-mail", None, succeeds=frozenset({403})),
    Route("POST", "/api/v1/local-mail", None, body={"token": "made up"}, succeeds=frozenset({403})),
    # Any other path: 404 below /api, and the console's page elsewhere.
    Route("GET", "/api<var>", None, succeeds=frozenset({404})),
    Route("GET", "/", None, succeeds=frozenset({200, 503})),
]
