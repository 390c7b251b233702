"""Paths of limits' endpoints, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from console.base.limits.api.views import LimitRequestViewSet, LimitViewSet

router = SimpleRouter(trailing_slash=False)
router.register("limit-requests", LimitRequestViewSet, basename="limit-request")

urlpatterns = [
    *router.urls,
    path("limits", LimitViewSet.as_view({"get": "list"}), name="limit-list"),
]
