"""Examples of payments as staff sees them, for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from console.staff.api.examples import ORGANIZATION, ORGANIZATION_ID

_ATTEMPT: dict[str, Any] = {
    "id": "pat_5xw4mzn6yt2ba3k2jq7v",
    "organization": ORGANIZATION,
    "origin": "collection",
    "state": "failed",
    "amount_minor": 1250,
    "currency": "USD",
    "invoice_ids": ["inv_3k2jq7v5xw4mzn6yt2ba"],
    "failure": "declined",
    "failure_code": "insufficient_funds",
    "failure_message": "Your card has insufficient funds.",
    "last_error": "",
    "calls": 1,
    "intent_id": "pi_3PkfG2L1",
    "created_at": "2026-12-04T00:01:00Z",
    "sent_at": "2026-12-04T00:01:04Z",
    "settled_at": "2026-12-04T00:01:05Z",
    "check_at": None,
}
_DIFFERENCE: dict[str, Any] = {
    "id": "dif_7m4nq2xk5vw3jzt6ybac",
    "organization_id": ORGANIZATION_ID,
    "kind": "payment_unknown",
    "subject": "pi_3PkfG2L1",
    "ours_minor": None,
    "theirs_minor": 1250,
    "currency": "USD",
    "happened_at": "2026-12-04T00:01:05Z",
    "created_at": "2026-12-05T02:00:07Z",
    "seen_at": "2026-12-05T02:00:07Z",
    "ended_at": None,
}
_RECONCILIATION: dict[str, Any] = {
    "id": "rec_3k2jq7v5xw4mzn6yt2ba",
    "begins_at": "2026-12-01T01:45:00Z",
    "ends_at": "2026-12-05T01:45:00Z",
    "compared": 12040,
    "differences": 1,
    "reason": "",
    "created_at": "2026-12-05T02:00:00Z",
    "finished_at": "2026-12-05T02:00:07Z",
}


def _ok_example(name: str, value: object) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=["200"])


ATTEMPTS = {"list": [_ok_example("A card was declined", _ATTEMPT)]}
DIFFERENCES = {"list": [_ok_example("A payment that is not entered", _DIFFERENCE)]}
RECONCILIATIONS = {"list": [_ok_example("A night", _RECONCILIATION)]}
