"""Addresses of incidents, under `/api/v1/`."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from console.incidents.api.views import IncidentViewSet

router = SimpleRouter(trailing_slash=False)
router.register("incidents", IncidentViewSet, basename="incident")

urlpatterns = router.urls
