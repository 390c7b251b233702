"""Addresses of accounts, under `/api/v1/`."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from console.accounts.api import views

router = SimpleRouter(trailing_slash=False)
router.register("api-keys", views.ApiKeyViewSet, basename="api-key")

urlpatterns = router.urls
