"""The application of billing."""

from __future__ import annotations

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Prices, invoices, the ledger."""

    name = "billing"
    label = "billing"

    def ready(self) -> None:
        """Registers the count of budgets for the limits, and listens for closed organizations."""
        from billing import receivers  # noqa: PLC0415
        from billing.budgets.changes import budgets_used  # noqa: PLC0415
        from console.base.accounts import signals  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_usage("budgets", budgets_used)
        signals.organization_closed.connect(receivers.follow_closing, dispatch_uid="billing")
