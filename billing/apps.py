"""The application of billing."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class BillingConfig(AppConfig):
    """Prices, invoices, the ledger."""

    name = "billing"
    label = "billing"

    def ready(self) -> None:
        """Registers what other packages ask of billing, and listens for closed organizations, for
        changes of what is owed, and for migrations.

        That is the count of budgets for the limits, names for the audit log, and metrics.
        """
        from billing import metrics, receivers  # noqa: PLC0415
        from billing.budgets.changes import budgets_used  # noqa: PLC0415
        from billing.collection.advances import follow_payer  # noqa: PLC0415
        from billing.collection.attempts import review_attempt  # noqa: PLC0415
        from billing.collection.dunning import follow_receivables  # noqa: PLC0415
        from billing.collection.watching import collection_metrics  # noqa: PLC0415
        from billing.models import Budget, Invoice  # noqa: PLC0415
        from billing.receivables.signals import receivables_changed  # noqa: PLC0415
        from console.base.accounts import signals  # noqa: PLC0415
        from console.base.audit.names import names_in, register_target_namer  # noqa: PLC0415
        from console.base.common.metrics import register_metrics  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_usage("budgets", budgets_used)
        register_metrics("invoices", metrics.invoice_metrics)
        register_metrics("collection", collection_metrics)
        register_target_namer("budget", names_in(Budget))
        register_target_namer("invoice", names_in(Invoice, "number"))
        post_migrate.connect(receivers.check_prices, sender=self, dispatch_uid="billing")
        signals.organization_closed.connect(receivers.follow_closing, dispatch_uid="billing")
        receivables_changed.connect(follow_receivables, dispatch_uid="billing")
        receivables_changed.connect(review_attempt, dispatch_uid="billing_attempts")
        receivables_changed.connect(follow_payer, dispatch_uid="billing_payers")
