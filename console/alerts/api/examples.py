"""Examples of alerts for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

CLUSTER_ID = "cl_3k2jq7v5xw4mzn6yt2ba"
NEW: dict[str, Any] = {
    "cluster_id": CLUSTER_ID,
    "name": "Checkout falls behind",
    "kind": "group_lag_seconds",
    "group": "checkout",
    "threshold": "60",
    "for_s": 300,
}
ALERT: dict[str, Any] = {
    "id": "alr_5xw4mzn6yt2ba3k2jq7v",
    **NEW,
    "emails": [],
    "state": "firing",
    "since": "2026-11-21T15:00:00Z",
    "changed_at": "2026-11-21T15:05:00Z",
    "back_since": None,
    "fired_at": "2026-11-21T15:05:00Z",
    "fired_subject": "checkout",
    "value": "93",
    "subject": "checkout",
    "evaluated_at": "2026-11-21T15:06:00Z",
    "generation": 1,
    "created_at": "2026-11-20T09:00:00Z",
}
FRESH = {
    "state": "ok",
    "since": "2026-11-20T09:00:00Z",
    "changed_at": "2026-11-20T09:00:00Z",
    "fired_at": None,
    "fired_subject": "",
    "value": None,
    "subject": "",
    "evaluated_at": None,
}


def response_example(name: str, value: object, status: int = 200) -> OpenApiExample:
    """Returns an example of a response body."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])


ALERTS = {
    "list": [response_example("One", ALERT)],
    "retrieve": [response_example("Firing", ALERT)],
    "create": [
        OpenApiExample("A group that is a minute behind", value=NEW, request_only=True),
        response_example("Created", ALERT | FRESH, 201),
    ],
    "partial_update": [
        OpenApiExample("Later", value={"threshold": "120"}, request_only=True),
        response_example("Changed", ALERT | FRESH | {"threshold": "120", "generation": 2}),
    ],
}
