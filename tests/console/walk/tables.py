"""All tables. An application that has endpoints has one."""

from __future__ import annotations

from tests.console.walk import accounts, billing, metering, provisioning, web

ROUTES = [*accounts.ROUTES, *billing.ROUTES, *metering.ROUTES, *provisioning.ROUTES, *web.ROUTES]
