"""All tables. An application that has endpoints has one."""

from __future__ import annotations

from tests.console.walk import accounts, web

ROUTES = [*accounts.ROUTES, *web.ROUTES]
