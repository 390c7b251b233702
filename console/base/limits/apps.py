"""The application of limits."""

from __future__ import annotations

from django.apps import AppConfig


class LimitsConfig(AppConfig):
    """Published limits, and requests to raise them."""

    name = "console.base.limits"
    label = "limits"

    def ready(self) -> None:
        """Registers how counters read an organization's limits, and what is used of one."""
        from console.base.common.concurrency import concurrency  # noqa: PLC0415
        from console.base.common.organization_limits import (  # noqa: PLC0415
            register_organization_limit,
        )
        from console.base.common.waiting import LIMIT  # noqa: PLC0415
        from console.base.limits.services.values import frequent_limit  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_organization_limit(frequent_limit)
        register_usage(LIMIT, lambda organization_id, _: concurrency().used(LIMIT, organization_id))
