"""The Django application of health checks and the console's pages."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Health checks, the console's pages and the local mail folder."""

    name = "console.web"
    label = "web"

    def ready(self) -> None:
        """Registers the readiness checks of the parts that every installation has.

        Also how many pages of the console are notified of changes.
        """
        from console.base.common.health import register_check  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415
        from console.web import checks  # noqa: PLC0415
        from console.web.api import watch  # noqa: PLC0415

        register_check("database", checks.check_database)
        register_check("migrations", checks.check_migrations)
        register_check("queue", checks.check_queue)
        register_usage(watch.LIMIT, watch.watches_used)
