"""Examples of the audit log for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

ENTRY: dict[str, Any] = {
    "id": "aud_4m7nq2xk5vw3jzt6ybac",
    "created_at": "2026-11-21T15:04:05.123456Z",
    "action": "topic.create",
    "actor": {"kind": "api_key", "id": "key_3k2jq7v5xw4mzn6yt2ba", "name": "deploy"},
    "target": {
        "type": "topic",
        "id": "cl_3k2jq7v5xw4mzn6yt2ba/payments",
        "name": "payments",
        "cluster": "orders",
    },
    "request_id": "req_5v2jq7k3xw4mzn6yt2ba",
    "address": "203.0.113.7",
    "detail": {"partitions": 6},
    "source": "api",
}
ENTRIES = {
    "list": [OpenApiExample("A topic was made", value=ENTRY, response_only=True)],
}
