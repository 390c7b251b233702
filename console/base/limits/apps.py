"""The application of limits."""

from __future__ import annotations

from django.apps import AppConfig


class LimitsConfig(AppConfig):
    """Published limits, and requests to raise them."""

    name = "console.base.limits"
    label = "limits"

    def ready(self) -> None:
        """Registers how the counter of API requests reads an organization's limit."""
        from console.base.common.rates import register_organization_rate  # noqa: PLC0415
        from console.base.limits.services.values import requests_per_second  # noqa: PLC0415

        register_organization_rate(requests_per_second)
