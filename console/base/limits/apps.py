"""The application of limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from console.base.common.places import Concurrency


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
        from console.base.common.waiting import DOWNLOADS, LIMIT  # noqa: PLC0415
        from console.base.limits.services.values import frequent_limit  # noqa: PLC0415
        from console.base.limits.usage import register_usage  # noqa: PLC0415

        register_organization_limit(frequent_limit)
        for limit in (LIMIT, DOWNLOADS):
            register_usage(limit, partial(_places_used, concurrency, limit))


def _places_used(
    counter: Callable[[], Concurrency], limit: str, organization_id: str, _cluster_id: str
) -> int:
    return counter().used(limit, organization_id)
