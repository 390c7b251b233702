"""The application of billing."""

from __future__ import annotations

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Prices, invoices, the ledger."""

    name = "billing"
    label = "billing"
