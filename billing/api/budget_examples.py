"""Examples of budgets and costs for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

CLUSTER_ID = "cl_3k2jq7v5xw4mzn6yt2ba"
TOPIC_ID = "5f0c9d0e1b7a4c63a2d5e8f10b94c7d6"

BUDGET: dict[str, Any] = {
    "id": "bud_5xw4mzn6yt2ba3k2jq7v",
    "name": "Team",
    "amount_minor": 5000,
    "currency": "USD",
    "thresholds": [50, 80, 100],
    "action": "suspend",
    "throttle_bytes_per_s": None,
    "state": "warned",
    "month": "2026-11",
    "spent_minor": 2613,
    "kept_minor": 410,
    "suspended_at": None,
    "throttled_at": None,
    "covers_all_until": None,
    "evaluated_at": "2026-11-21T15:00:30Z",
    "generation": 1,
    "created_at": "2026-11-02T09:00:00Z",
    "events": [
        {
            "id": "bev_zn6yt2ba3k2jq7v5xw4m",
            "kind": "threshold_reached",
            "month": "2026-11",
            "threshold": 50,
            "spent_minor": 2503,
            "amount_minor": 5000,
            "action": "suspend",
            "throttle_bytes_per_s": None,
            "created_at": "2026-11-20T11:14:30Z",
        }
    ],
}
METERS = [{"meter": "ingress_bytes", "quantity": "26843545600", "amount_minor": 60}]
COSTS: dict[str, Any] = {
    "month": "2026-11",
    "currency": "USD",
    "total_minor": 60,
    "beyond_budget_minor": 0,
    "forecast_minor": 97,
    "lines": [
        {
            "meter": "ingress_bytes",
            "cluster_id": CLUSTER_ID,
            "cluster": "orders",
            "quantity": "26843545600",
            "free_quantity": "10737418240",
            "unit": "GiB",
            "unit_price": "0.04",
            "amount_minor": 60,
            "forecast_quantity": "36813776896",
            "forecast_minor": 97,
        }
    ],
    "by_meter": METERS,
    "by_cluster": [
        {
            "cluster_id": CLUSTER_ID,
            "cluster": "orders",
            "billed_minor": 60,
            "forecast_minor": 97,
            "meters": METERS,
            "amount_minor": 60,
        }
    ],
    "by_topic": [
        {
            "cluster_id": CLUSTER_ID,
            "cluster": "orders",
            "topic_id": TOPIC_ID,
            "topic": "payments",
            "meters": METERS,
            "amount_minor": 60,
        }
    ],
    "by_principal": [
        {
            "cluster_id": CLUSTER_ID,
            "cluster": "orders",
            "principal": "User:cred_3n7hq2xw5m4kzt6yb2av",
            "principal_name": "payments-writer",
            "meters": METERS,
            "amount_minor": 60,
        }
    ],
    "by_day": [{"day": "2026-11-20", "meters": METERS, "amount_minor": 60}],
    "provisional_until": "2026-11-21T14:58:00Z",
    "trial_left": None,
}


def response_example(name: str, value: object, status: int = 200) -> OpenApiExample:
    """One example of a response body, for the OpenAPI file."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])


NEW = {"name": "Team", "amount_minor": 5000, "action": "suspend"}
SLOW = {"name": "Team", "amount_minor": 5000, "action": "throttle", "throttle_bytes_per_s": 2**20}
BUDGETS = {
    "list": [response_example("One", BUDGET)],
    "retrieve": [response_example("Budget", BUDGET)],
    "create": [
        OpenApiExample("Stop at fifty dollars", value=NEW, request_only=True),
        OpenApiExample("Slow down at fifty dollars", value=SLOW, request_only=True),
        response_example(
            "Created", BUDGET | {"state": "ok", "spent_minor": 120, "events": []}, 201
        ),
    ],
    "partial_update": [
        OpenApiExample("Twice as much", value={"amount_minor": 10_000}, request_only=True),
        response_example("Changed", BUDGET | {"amount_minor": 10_000}),
    ],
}
SHOW_COSTS = {"GET": [response_example("This month", COSTS)]}
