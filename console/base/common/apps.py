"""The Django application `common`, which every other application uses."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Audit, idempotency, outbox, and the bases of the API."""

    name = "console.base.common"
    label = "common"

    def ready(self) -> None:
        """Makes our Celery application the current one, and registers signals and metrics."""
        from console.base.common import queue_metrics  # noqa: PLC0415
        from console.base.common.metrics import register_metrics  # noqa: PLC0415

        import_module("console.celery")
        import_module("console.base.common.task_metrics")
        import_module("console.base.common.task_requests")
        register_metrics("outbox", queue_metrics.outbox_metrics)
        register_metrics("queue", queue_metrics.queue_metrics)
