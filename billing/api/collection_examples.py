"""Examples of payments for the OpenAPI file, by view and method."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from billing.api.invoice_examples import response_example

INVOICE_ID = "inv_3k2jq7v5xw4mzn6yt2ba"
_PAYMENT: dict[str, Any] = {
    "id": "pay_7m4nq2xk5vw3jzt6ybac",
    "method": "card",
    "amount_minor": 1250,
    "currency": "USD",
    "credit_minor": 0,
    "refunded_minor": 0,
    "received_at": "2026-12-04T00:01:05Z",
    "invoices": [{"id": INVOICE_ID, "number": "FR-2026-000042", "amount_minor": 1250}],
}
PAYMENT_METHOD = [
    response_example(
        "A card",
        {
            "collector": "stripe",
            "card": {
                "brand": "visa",
                "last4": "4242",
                "expires_month": 12,
                "expires_year": 2030,
            },
            "can_manage": True,
            "refusal": "",
            "advance_minor": None,
            "currency": "USD",
        },
    )
]
ADVANCE = [
    response_example(
        "Paid",
        {
            "id": "pat_2ba3k2jq7v5xw4mzn6yt",
            "state": "succeeded",
            "amount_minor": 2600,
            "currency": "USD",
            "invoice_ids": [],
            "url": None,
            "failure": "",
            "message": "",
        },
    )
]
REDIRECT = [
    response_example("A page of Stripe", {"url": "https://checkout.stripe.com/c/pay/cs_test_a1"})
]
PAY = [
    OpenApiExample("All that is unpaid", value={"with_older": True}, request_only=True),
    response_example(
        "The bank asks the customer",
        {
            "id": "pat_5xw4mzn6yt2ba3k2jq7v",
            "state": "requires_action",
            "amount_minor": 1250,
            "currency": "USD",
            "invoice_ids": [INVOICE_ID],
            "url": "https://hooks.stripe.com/redirect/authenticate/src_1",
            "failure": "",
            "message": "",
        },
    ),
]
PAYMENTS = {"list": [response_example("By card", _PAYMENT)]}
ACCOUNT = [
    response_example(
        "Nothing is unpaid",
        {
            "collector": "stripe",
            "stage": "paid",
            "currency": "USD",
            "open_minor": 0,
            "unpaid_minor": 0,
            "credit_minor": 0,
            "unpaid_since": None,
            "unpaid_invoice_ids": [],
            "failure": "",
            "next_step": None,
            "next_charge_at": None,
        },
    ),
    response_example(
        "A card was declined",
        {
            "collector": "stripe",
            "stage": "unpaid",
            "currency": "USD",
            "open_minor": 1250,
            "unpaid_minor": 1250,
            "credit_minor": 0,
            "unpaid_since": "2026-12-04T00:01:05Z",
            "unpaid_invoice_ids": [INVOICE_ID],
            "failure": "declined",
            "next_step": {"stage": "suspended", "at": "2026-12-18T00:01:05Z"},
            "next_charge_at": "2026-12-05T00:01:05Z",
        },
    ),
    response_example(
        "Without a role in the organization",
        {
            "collector": "stripe",
            "stage": "unpaid",
            "currency": "USD",
            "open_minor": None,
            "unpaid_minor": None,
            "credit_minor": None,
            "unpaid_since": "2026-12-04T00:01:05Z",
            "unpaid_invoice_ids": [],
            "failure": "declined",
            "next_step": {"stage": "suspended", "at": "2026-12-18T00:01:05Z"},
            "next_charge_at": "2026-12-05T00:01:05Z",
        },
    ),
]
