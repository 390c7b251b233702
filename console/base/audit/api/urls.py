"""Paths of the audit log's endpoints, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from console.base.audit.api.views import AuditLogViewSet

urlpatterns = [
    path("audit-log", AuditLogViewSet.as_view({"get": "list"}), name="audit-log"),
    path("audit-log/export", AuditLogViewSet.as_view({"get": "export"}), name="audit-log-export"),
]
