"""The application of what every application shares."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Audit, idempotency, outbox, and the bases of the API."""

    name = "console.common"
    label = "common"

    def ready(self) -> None:
        """Makes our Celery application the current one, in the web process too."""
        import_module("console.celery")
