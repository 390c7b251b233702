"""Addresses of alerts, under `/api/v1/`."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from console.alerts.api.views import AlertViewSet

router = SimpleRouter(trailing_slash=False)
router.register("alerts", AlertViewSet, basename="alert")

urlpatterns = router.urls
