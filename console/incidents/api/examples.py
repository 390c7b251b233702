"""Examples of incidents for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

INCIDENT: dict[str, Any] = {
    "id": "inc_4m7nq2xk5vw3jzt6ybac",
    "cluster_id": "cl_3k2jq7v5xw4mzn6yt2ba",
    "kind": "brokers_crashing",
    "state": "open",
    "title": "Brokers of orders crash again and again",
    "opened_at": "2026-11-21T15:00:00Z",
    "closed_at": None,
    "updates": [
        {
            "at": "2026-11-21T15:00:00Z",
            "text": "They are started again each time. Acknowledged records are safe; clients "
            "wait.",
        }
    ],
}
INCIDENTS = {
    "list": [OpenApiExample("An open incident", value=INCIDENT, response_only=True)],
    "retrieve": [OpenApiExample("An open incident", value=INCIDENT, response_only=True)],
}
