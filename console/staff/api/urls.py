"""Addresses of staff, under `/api/v1/`."""

from __future__ import annotations

from django.urls import path, re_path

from console.staff.api import collection, money, views

LIMIT_REQUEST = r"^staff/limit-requests/(?P<id>lrq_[a-z2-7]+)"

urlpatterns = [
    path("staff/cells", views.StaffCellViewSet.as_view({"get": "list"}), name="staff-cells"),
    path(
        "staff/clusters", views.StaffClusterViewSet.as_view({"get": "list"}), name="staff-clusters"
    ),
    re_path(
        r"^staff/clusters/(?P<id>cl_[a-z2-7]+):break-glass$",
        views.StaffBreakGlassViewSet.as_view({"post": "permit_deletion"}),
        name="staff-cluster-break-glass",
    ),
    path(
        "staff/break-glass",
        views.StaffBreakGlassViewSet.as_view({"get": "list"}),
        name="staff-break-glass",
    ),
    path(
        "staff/operations",
        views.StaffOperationViewSet.as_view({"get": "list"}),
        name="staff-operations",
    ),
    path(
        "staff/incidents",
        views.StaffIncidentViewSet.as_view({"get": "list"}),
        name="staff-incidents",
    ),
    path(
        "staff/invoice-months",
        views.StaffInvoiceMonthViewSet.as_view({"get": "list"}),
        name="staff-invoice-months",
    ),
    path(
        "staff/missing-invoices",
        views.StaffMissingInvoiceViewSet.as_view({"get": "list"}),
        name="staff-missing-invoices",
    ),
    path(
        "staff/payment-attempts",
        collection.StaffAttemptViewSet.as_view({"get": "list"}),
        name="staff-payment-attempts",
    ),
    path(
        "staff/reconciliation",
        collection.StaffDifferenceViewSet.as_view({"get": "list"}),
        name="staff-reconciliation",
    ),
    path(
        "staff/reconciliation/runs",
        collection.StaffReconciliationViewSet.as_view({"get": "list"}),
        name="staff-reconciliation-runs",
    ),
    path(
        "staff/limit-requests",
        views.StaffLimitRequestViewSet.as_view({"get": "list"}),
        name="staff-limit-requests",
    ),
    re_path(
        rf"{LIMIT_REQUEST}:grant$",
        views.StaffLimitRequestViewSet.as_view({"post": "grant_request"}),
        name="staff-limit-request-grant",
    ),
    re_path(
        rf"{LIMIT_REQUEST}:refuse$",
        views.StaffLimitRequestViewSet.as_view({"post": "refuse_request"}),
        name="staff-limit-request-refuse",
    ),
    path(
        "staff/receivables",
        money.StaffReceivableViewSet.as_view({"get": "list"}),
        name="staff-receivables",
    ),
    path(
        "staff/write-offs",
        money.StaffReceivableViewSet.as_view({"post": "write_off"}),
        name="staff-write-offs",
    ),
    path(
        "staff/payments",
        money.StaffPaymentViewSet.as_view({"get": "list", "post": "record"}),
        name="staff-payments",
    ),
    path(
        "staff/refunds",
        money.StaffPaymentViewSet.as_view({"post": "refund"}),
        name="staff-refunds",
    ),
    path(
        "staff/credits",
        money.StaffCreditViewSet.as_view({"post": "grant"}),
        name="staff-credits",
    ),
]
