"""The URLs of the whole service."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from console.base.common.api.problems import not_found
from console.web import health, pages

API_PREFIX = "api/v1/"

api_urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("console.base.audit.api.urls")),
    path("", include("console.base.limits.api.urls")),
    path("", include("console.base.accounts.api.urls")),
    path("", include("provisioning.urls")),
    path("", include("metering.api.urls")),
    path("", include("billing.api.urls")),
    path("", include("console.incidents.api.urls")),
    path("", include("console.alerts.api.urls")),
    path("", include("console.staff.api.urls")),
    path("", include("console.web.api.urls")),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path(API_PREFIX, include(api_urlpatterns)),
    # An address below /api that is no endpoint answers with a problem document, not with a page.
    re_path(r"^api(/|$)", not_found, name="api-absent"),
    # It matches any characters: names of topics in an address may contain any, line ends too.
    re_path(r"", pages.console, name="console"),
]

handler400 = "console.base.common.api.problems.bad_request"
handler403 = "console.base.common.api.problems.permission_denied"
handler404 = "console.base.common.api.problems.not_found"
handler500 = "console.base.common.api.problems.server_error"
