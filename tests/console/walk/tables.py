"""All tables. An application that has endpoints has one."""

from __future__ import annotations

from tests.console.walk import accounts, audit, billing, limits, metering, provisioning, web

ROUTES = [
    *accounts.ROUTES,
    *audit.ROUTES,
    *billing.ROUTES,
    *limits.ROUTES,
    *metering.ROUTES,
    *provisioning.ROUTES,
    *web.ROUTES,
]
