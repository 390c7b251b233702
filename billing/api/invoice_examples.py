"""Examples for the OpenAPI file, by view and action."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample


def response_example(name: str, value: object) -> OpenApiExample:
    """One example of the body of a 200 response, for the OpenAPI file."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=["200"])


PRICES = [
    response_example(
        "First catalogue",
        {
            "id": "prv_firstcatalogueaaaaaa",
            "valid_from": "2020-01-01",
            "currency": "USD",
            "prices": [
                {
                    "meter": "ingress_bytes",
                    "name": "Data in",
                    "unit_price": "0.04",
                    "unit": "GiB",
                    "free_units": 10,
                    "free_unit": "GiB",
                    "base_unit": "byte",
                }
            ],
        },
    )
]
_SUMMARY: dict[str, Any] = {
    "id": "inv_3k2jq7v5xw4mzn6yt2ba",
    "kind": "invoice",
    "number": "FR-2026-000042",
    "state": "issued",
    "month": "2026-11",
    "currency": "USD",
    "subtotal_minor": 40,
    "tax_minor": 0,
    "total_minor": 40,
    "open_minor": 30,
    "due_on": "2026-12-18",
    "paid_at": None,
    "reference": "RF97FR2026000042",
    "issued_at": "2026-12-04T00:00:05Z",
    "created_at": "2026-12-04T00:00:05Z",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}
_PARTY: dict[str, Any] = {
    "name": "Freshet",
    "address": [],
    "country": "",
    "vat_id": "",
    "registration": "",
    "email": "",
}
_INVOICE = {
    **_SUMMARY,
    "lines": [
        {
            "id": "inl_7m4nq2xk5vw3jzt6ybac",
            "kind": "usage",
            "meter": "ingress_bytes",
            "cluster_id": "cl_3k2jq7v5xw4mzn6yt2ba",
            "cluster": "orders",
            "description": "Data in",
            "quantity": "21474836480",
            "unit": "byte",
            "free_quantity": "10737418240",
            "unit_price": "0.04",
            "price_unit": "GiB",
            "price_unit_size": 1073741824,
            "amount_minor": 40,
            "usage_row_ids": ["ur_5xw4mzn6yt2ba3k2jq7v"],
        }
    ],
    "payments": [
        {
            "id": "pay_4mzn6yt2ba3k2jq7v5w5",
            "method": "transfer",
            "amount_minor": 10,
            "received_at": "2026-12-10T00:00:00Z",
        }
    ],
    "seller": _PARTY,
    "customer": {**_PARTY, "name": "Acme"},
    "tax": {"category": "O", "percent": "0", "reason": "The seller is not registered for VAT."},
    "price_version": "prv_firstcatalogueaaaaaa",
    "closed_early": None,
    "credits_id": None,
    "credit_note_id": None,
    "reason": "",
}
INVOICES = {
    "list": [response_example("One", _SUMMARY)],
    "retrieve": [response_example("Issued", _INVOICE)],
}
_DETAILS = {
    "legal_name": "Acme Payments GmbH",
    "address": ["Lindenallee 3", "10115 Berlin"],
    "country": "DE",
    "vat_id": "DE987654328",
    "email": "invoices@acme.example",
}
DETAILS = [response_example("Given", {**_DETAILS, "generation": 2})]
DETAILS_CHANGE = [
    OpenApiExample("All", value=_DETAILS, request_only=True),
    response_example("Changed", {**_DETAILS, "generation": 3}),
]
