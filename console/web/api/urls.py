"""Addresses that belong to no application, under `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from console.web.api import views
from console.web.api.watch import WatchView

urlpatterns = [
    path("watch", WatchView.as_view(), name="watch"),
    path("local-mail", views.LocalMailView.as_view(), name="local-mail"),
]
