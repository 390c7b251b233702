"""Routes of staff: no key opens them, whosever it is."""

from __future__ import annotations

from tests.console.walk.limits import a_request
from tests.console.walk.routes import Route

REQUEST = "/api/v1/staff/limit-requests/<id>"
ROUTES = [
    *(
        Route("GET", f"/api/v1/staff/{name}", None, session=True, staff=True)
        for name in ("cells", "clusters", "operations", "incidents", "limit-requests")
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
