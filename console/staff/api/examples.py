"""Examples of what staff sees, for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from console.base.limits.api.examples import REQUEST
from console.incidents.api.examples import INCIDENT
from provisioning.clusters.api.examples import CLUSTER_ID, OPERATION

ORGANIZATION_ID = "org_5w4mzn6yt2ba3k2jq7v5"
ORGANIZATION: dict[str, str] = {"id": ORGANIZATION_ID, "name": "Acme"}
CELL: dict[str, Any] = {
    "id": "local",
    "region": "local",
    "reachable": True,
    "phases": {"asleep": 41, "running": 7},
    "brokers": 7,
    "connections": 120,
    "restarts": 1,
    "meter": {
        "ran_at": "2026-11-21T15:04:05Z",
        "lag_s": 12,
        "damaged_files": 0,
        "incomplete_hours": 0,
        "missing_days": [],
        "running": [
            {
                "id": "run_4xw2k7m3zq5vbn6tjy4a",
                "job": "rollup",
                "day": "2026-11-20",
                "began_at": "2026-11-21T15:02:11Z",
                "reported_at": "2026-11-21T15:04:01Z",
                "progress": {
                    "stage": 4,
                    "stages": 6,
                    "what": "write hours and days",
                    "tasks_done": 18,
                    "tasks": 64,
                    "rows": 2750000,
                    "bytes": 181403648,
                },
            }
        ],
    },
    "health": {
        "told_at": "2026-11-21T15:04:05Z",
        "wanted": 7,
        "unhealthy": 0,
        "deletions_held": False,
        "reason": "",
        "platform": "",
        "machines": [],
        "orphans": [],
    },
}
PERMIT: dict[str, Any] = {
    "id": "bgl_3k2jq7v5xw4mzn6yt2ba",
    "organization_id": ORGANIZATION_ID,
    "cluster_id": CLUSTER_ID,
    "reason": "Its owner asked for it by telephone, ticket 4711.",
    "made_by": "usr_5w4mzn6yt2ba3k2jq7v5",
    "audit_id": "aud_7m4nq2xk5vw3jzt6ybac",
    "created_at": "2026-11-21T15:00:00Z",
    "expires_at": "2026-11-21T16:00:00Z",
    "used_at": None,
}
CLUSTER: dict[str, Any] = {
    "id": CLUSTER_ID,
    "name": "orders",
    "organization": ORGANIZATION,
    "cell": "local",
    "phase": "running",
    "message": "",
    "connections": 2,
    "restarts": 0,
    "generation": 3,
    "reconciled_generation": 3,
    "checked_at": "2026-11-21T15:04:05Z",
    "created_at": "2026-11-21T15:00:00Z",
}
MONTH: dict[str, Any] = {
    "id": "2026-10",
    "reason": "",
    "attempts": 0,
    "begun_at": "2026-11-04T00:03:00Z",
    "finished_at": "2026-11-04T00:03:41Z",
    "next_try_at": "2026-11-04T00:03:00Z",
}
MISSING: dict[str, Any] = {
    "id": "miv_4mzn6yt2ba3k2jq7v5w5",
    "organization": ORGANIZATION,
    "month": "2026-10",
    "kind": "impossible",
    "reason": "billing.vat_rates names no rate for FR. Add it, such as DE=19.",
    "attempts": 3,
    "created_at": "2026-11-04T00:03:12Z",
    "tried_at": "2026-11-04T00:33:14Z",
    "next_try_at": "2026-11-04T01:13:14Z",
}
ANSWERED: dict[str, Any] = {
    **REQUEST,
    "organization_id": ORGANIZATION_ID,
    "state": "granted",
    "answer": "Gladly.",
    "granted": 10000,
    "answered_at": "2026-11-21T16:00:00Z",
}
REFUSED: dict[str, Any] = {
    **ANSWERED,
    "state": "refused",
    "answer": "Please split the cluster first.",
    "granted": None,
}


def ok_example(name: str, value: object) -> OpenApiExample:
    """Returns an example of an answer with status 200, whose body is `value`."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=["200"])


def created_example(name: str, value: object) -> OpenApiExample:
    """Returns an example of an answer with status 201, whose body is `value`."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=["201"])


def request_example(name: str, value: object) -> OpenApiExample:
    """Returns an example of a request, whose body is `value`."""
    return OpenApiExample(name, value=value, request_only=True)


CELLS = {"list": [ok_example("The only cell", CELL)]}
CLUSTERS = {"list": [ok_example("A cluster", CLUSTER)]}
BREAK_GLASS = {
    "list": [ok_example("Not used yet", PERMIT)],
    "permit_deletion": [
        request_example("For an hour", {"reason": PERMIT["reason"]}),
        created_example("It holds", PERMIT),
    ],
}
OPERATIONS = {"list": [ok_example("It runs", {**OPERATION, "organization": ORGANIZATION})]}
INCIDENTS = {"list": [ok_example("It is open", {**INCIDENT, "organization_id": ORGANIZATION_ID})]}
INVOICE_MONTHS = {"list": [ok_example("All was looked at", MONTH)]}
MISSING_INVOICES = {"list": [ok_example("A country without a rate", MISSING)]}
LIMIT_REQUESTS = {
    "list": [ok_example("It is open", {**REQUEST, "organization_id": ORGANIZATION_ID})],
    "grant_request": [
        request_example("As wanted", {"answer": "Gladly."}),
        ok_example("Granted", ANSWERED),
    ],
    "refuse_request": [
        request_example("Not now", {"answer": "Please split the cluster first."}),
        ok_example("Refused", REFUSED),
    ],
}
