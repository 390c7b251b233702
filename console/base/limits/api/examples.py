"""Examples of limits for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

CLUSTER_ID = "cl_3k2jq7v5xw4mzn6yt2ba"
LIMIT: dict[str, Any] = {
    "name": "partitions",
    "scope": "cluster",
    "limit": 4000,
    "used": 312,
    "unit": "partitions",
    "effect": "Creating another one is refused (403, limit_reached).",
    "raisable": True,
}
WANTED: dict[str, Any] = {
    "limit": "partitions",
    "cluster_id": CLUSTER_ID,
    "wanted": 10000,
    "reason": "A topic for each of our 300 shops.",
}
REQUEST: dict[str, Any] = {
    "id": "lrq_4m7nq2xk5vw3jzt6ybac",
    **WANTED,
    "state": "open",
    "answer": "",
    "granted": None,
    "created_at": "2026-11-21T15:00:00Z",
    "answered_at": None,
}
LIMITS = {"GET": [OpenApiExample("Partitions", value=LIMIT, response_only=True)]}
REQUESTS = {
    "list": [OpenApiExample("An open request", value=REQUEST, response_only=True)],
    "retrieve": [OpenApiExample("An open request", value=REQUEST, response_only=True)],
    "create": [
        OpenApiExample("More partitions", value=WANTED, request_only=True),
        OpenApiExample("Asked", value=REQUEST, response_only=True, status_codes=["201"]),
    ],
}
