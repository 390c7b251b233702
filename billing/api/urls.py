"""Addresses of billing, under `/api/v1/`."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from billing.api.budgets import BudgetViewSet
from billing.api.costs import CostsView

router = SimpleRouter(trailing_slash=False)
router.register("budgets", BudgetViewSet, basename="budget")

urlpatterns = [
    *router.urls,
    path("costs", CostsView.as_view(), name="costs"),
]
