"""Routes of the audit log."""

from __future__ import annotations

from console.base.common.actor import Permission
from tests.console.walk.routes import Route

ROUTES = [
    Route("GET", "/api/v1/audit-log", Permission.MANAGE),
    Route("GET", "/api/v1/audit-log/export", Permission.MANAGE),
]
