"""Addresses of billing, under `/api/v1/`."""

from __future__ import annotations

from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from billing.api.budgets import BudgetViewSet
from billing.api.collection import (
    AccountView,
    InvoicePayView,
    PaymentMethodAdvanceView,
    PaymentMethodPortalView,
    PaymentMethodSetupView,
    PaymentMethodView,
    PaymentViewSet,
    StripeWebhookView,
)
from billing.api.costs import CostsView
from billing.api.invoices import BillingDetailsView, InvoiceViewSet, PricesView

INVOICE = r"^invoices/(?P<id>inv_[a-z2-7]+)"

router = SimpleRouter(trailing_slash=False)
router.register("budgets", BudgetViewSet, basename="budget")

urlpatterns = [
    *router.urls,
    path("costs", CostsView.as_view(), name="costs"),
    path("prices", PricesView.as_view(), name="prices"),
    path("billing-details", BillingDetailsView.as_view(), name="billing-details"),
    path("account", AccountView.as_view(), name="account"),
    path("payments", PaymentViewSet.as_view({"get": "list"}), name="payments"),
    path("payment-method", PaymentMethodView.as_view(), name="payment-method"),
    path("payment-method/setup", PaymentMethodSetupView.as_view(), name="payment-method-setup"),
    path("payment-method/portal", PaymentMethodPortalView.as_view(), name="payment-method-portal"),
    path(
        "payment-method/advance", PaymentMethodAdvanceView.as_view(), name="payment-method-advance"
    ),
    path("webhooks/stripe", StripeWebhookView.as_view(), name="stripe-webhook"),
    path("invoices", InvoiceViewSet.as_view({"get": "list"}), name="invoice-list"),
    re_path(rf"{INVOICE}$", InvoiceViewSet.as_view({"get": "retrieve"}), name="invoice-detail"),
    re_path(rf"{INVOICE}/pay$", InvoicePayView.as_view(), name="invoice-pay"),
    re_path(rf"{INVOICE}/pdf$", InvoiceViewSet.as_view({"get": "pdf"}), name="invoice-pdf"),
    re_path(
        rf"{INVOICE}/evidence$",
        InvoiceViewSet.as_view({"get": "evidence"}),
        name="invoice-evidence",
    ),
]
