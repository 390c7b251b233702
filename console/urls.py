"""The one URL table."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

api_urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("console.accounts.api.urls")),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include(api_urlpatterns)),
]

handler400 = "console.common.api.problems.bad_request"
handler403 = "console.common.api.problems.permission_denied"
handler404 = "console.common.api.problems.not_found"
handler500 = "console.common.api.problems.server_error"
