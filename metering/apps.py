"""The application of usage."""

from __future__ import annotations

from django.apps import AppConfig


class MeteringConfig(AppConfig):
    """What clusters used: minutes while they are fresh, rolled-up hours and days behind them."""

    name = "metering"
    label = "metering"

    def ready(self) -> None:
        """Registers the meter's health check and metrics, and whether a cluster is metered, which
        services ask before they remove data."""
        from console.base.common.health import register_check  # noqa: PLC0415
        from console.base.common.metered import register_meter  # noqa: PLC0415
        from console.base.common.metrics import register_metrics  # noqa: PLC0415
        from metering import checks, metrics  # noqa: PLC0415
        from metering.services import totals  # noqa: PLC0415

        register_check("metering", checks.check_metering)
        register_meter("metering", totals.is_metered)
        register_metrics("usage", metrics.ingest_metrics)
        register_metrics("reconciliations", metrics.reconciliation_metrics)
        register_metrics("running_totals", metrics.totals_metrics)
