"""Addresses of usage, under `/api/v1/`."""

from __future__ import annotations

from django.urls import path, re_path

from metering.api.views import ReconciledDayViewSet, StoredView, UsageRowViewSet, UsageViewSet

urlpatterns = [
    re_path(r"^usage$", UsageViewSet.as_view({"get": "list"}), name="usage-list"),
    re_path(
        r"^usage/reconciliations$",
        ReconciledDayViewSet.as_view({"get": "list"}),
        name="usage-reconciliation-list",
    ),
    path("usage/stored", StoredView.as_view(), name="usage-stored"),
    re_path(
        r"^usage/rows/(?P<id>ur_[a-z2-7]+)$",
        UsageRowViewSet.as_view({"get": "retrieve"}),
        name="usage-row",
    ),
]
