"""Examples of what customers owe and pay, for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from console.staff.api.examples import (
    ORGANIZATION,
    ORGANIZATION_ID,
    created_example,
    ok_example,
    request_example,
)

INVOICE_ID = "inv_3k2jq7v5xw4mzn6yt2ba"
PAYMENT_ID = "pay_4mzn6yt2ba3k2jq7v5w5"
PERSON = "staff:usr_5w4mzn6yt2ba3k2jq7v5"
RECEIVABLE: dict[str, Any] = {
    "invoice_id": INVOICE_ID,
    "number": "FR-2026-000042",
    "organization": ORGANIZATION,
    "state": "open",
    "currency": "USD",
    "amount_minor": 4000,
    "open_minor": 3000,
    "written_off_minor": 0,
    "due_on": "2026-12-18",
    "overdue": True,
    "reference": "RF97FR2026000042",
    "created_at": "2026-12-04T00:00:05Z",
    "settled_at": None,
}
WRITTEN_OFF: dict[str, Any] = {
    **RECEIVABLE,
    "state": "uncollectible",
    "open_minor": 0,
    "written_off_minor": 3000,
    "overdue": False,
    "settled_at": "2027-06-01T09:00:00Z",
}
PAYMENT: dict[str, Any] = {
    "id": PAYMENT_ID,
    "organization": ORGANIZATION,
    "method": "transfer",
    "external_id": "2026121000042",
    "currency": "USD",
    "amount_minor": 1000,
    "unapplied_minor": 0,
    "refunded_minor": 0,
    "received_at": "2026-12-10T00:00:00Z",
    "entered_by": PERSON,
    "note": "",
    "created_at": "2026-12-10T08:12:00Z",
}
CREDIT: dict[str, Any] = {
    "id": "crd_7m4nq2xk5vw3jzt6ybac",
    "organization": ORGANIZATION,
    "external_id": "ticket 4711",
    "currency": "USD",
    "amount_minor": 500,
    "unapplied_minor": 0,
    "reason": "Sorry for the outage of 3 December.",
    "entered_by": PERSON,
    "created_at": "2026-12-05T08:12:00Z",
}
REFUND: dict[str, Any] = {
    "id": "rfd_2ba3k2jq7v5xw4mzn6yt",
    "payment_id": PAYMENT_ID,
    "organization_id": ORGANIZATION_ID,
    "external_id": "2026121100007",
    "amount_minor": 1000,
    "reason": "It was paid twice.",
    "entered_by": PERSON,
    "made": True,
    "created_at": "2026-12-11T08:12:00Z",
}
RECEIVABLES = {
    "list": [ok_example("Partly paid, and overdue", RECEIVABLE)],
    "write_off": [
        request_example(
            "Nothing more will come",
            {"invoice_id": INVOICE_ID, "reason": "The company is insolvent."},
        ),
        created_example("Written off", WRITTEN_OFF),
    ],
}
PAYMENTS = {
    "list": [ok_example("A transfer", PAYMENT)],
    "record": [
        request_example(
            "A transfer",
            {
                "reference": "RF97 FR20 2600 0042",
                "amount_minor": 1000,
                "currency": "USD",
                "external_id": "2026121000042",
                "received_at": "2026-12-10T00:00:00Z",
            },
        ),
        created_example("Entered", PAYMENT),
    ],
    "refund": [
        request_example(
            "All of it",
            {
                "payment_id": PAYMENT_ID,
                "amount_minor": 1000,
                "external_id": "2026121100007",
                "reason": "It was paid twice.",
            },
        ),
        created_example("Entered", REFUND),
    ],
}
CREDITS = {
    "grant": [
        request_example(
            "After an outage",
            {
                "organization_id": ORGANIZATION_ID,
                "amount_minor": 500,
                "currency": "USD",
                "reason": "Sorry for the outage of 3 December.",
                "external_id": "ticket 4711",
            },
        ),
        created_example("Granted, and used", CREDIT),
    ],
}
