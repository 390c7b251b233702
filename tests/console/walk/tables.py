"""All routes: one table for each application that has endpoints."""

from __future__ import annotations

from tests.console.walk import (
    accounts,
    alerts,
    audit,
    billing,
    incidents,
    limits,
    metering,
    provisioning,
    staff,
    web,
)

ROUTES = [
    *accounts.ROUTES,
    *alerts.ROUTES,
    *audit.ROUTES,
    *billing.ROUTES,
    *incidents.ROUTES,
    *limits.ROUTES,
    *metering.ROUTES,
    *provisioning.ROUTES,
    *staff.ROUTES,
    *web.ROUTES,
]
