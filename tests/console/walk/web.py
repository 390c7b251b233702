"""Routes that belong to no application."""

from __future__ import annotations

from tests.console.walk.routes import Route

ROUTES = [
    Route("GET", "/healthz", None),
    # Whether the parts answer is not the walk's business.
    Route("GET", "/readyz", None, succeeds=frozenset({200, 503})),
    Route("GET", "/api/v1/local-mail", None),
    # Whatever else: no endpoint below /api, and the console's page elsewhere.
    Route("GET", "/api<var>", None, succeeds=frozenset({404})),
    Route("GET", "/", None, succeeds=frozenset({200, 503})),
]
