"""Paths of accounts' endpoints, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from console.base.accounts.api import ending, members, people, projects, second_factors, views
from console.base.accounts.api.sessions import SessionView

router = SimpleRouter(trailing_slash=False)
router.register("api-keys", views.ApiKeyViewSet, basename="api-key")
router.register("invitations", members.InvitationViewSet, basename="invitation")
router.register("members", members.MemberViewSet, basename="member")
router.register("projects", projects.ProjectViewSet, basename="project")
router.register("role-bindings", projects.RoleBindingViewSet, basename="role-binding")
router.register("service-accounts", projects.ServiceAccountViewSet, basename="service-account")
router.register("sessions", people.UserSessionViewSet, basename="user-session")

urlpatterns = [
    *router.urls,
    re_path(
        r"^api-keys/(?P<id>key_[a-z2-7]+):rotate$",
        views.ApiKeyViewSet.as_view({"post": "rotate"}),
        name="api-key-rotate",
    ),
    path("invitations/accept", members.InvitationAcceptView.as_view(), name="invitation-accept"),
    re_path(
        r"^invitations/(?P<id>ivt_[a-z2-7]+):resend$",
        members.InvitationViewSet.as_view({"post": "resend"}),
        name="invitation-resend",
    ),
    path("organizations/current/export", ending.ExportView.as_view(), name="export"),
    path("organizations/current:close", ending.CloseView.as_view(), name="close"),
    path("organizations/current", views.CurrentOrganizationView.as_view(), name="organization"),
    path("password-reset", people.PasswordResetView.as_view(), name="password-reset"),
    path(
        "password-reset/confirm",
        people.PasswordResetConfirmView.as_view(),
        name="password-reset-confirm",
    ),
    path("session", SessionView.as_view(), name="session"),
    path("session/link", people.SignInLinkView.as_view(), name="sign-in-link"),
    path("session/totp", second_factors.TotpView.as_view(), name="totp"),
    path("session/totp/confirm", second_factors.TotpConfirmView.as_view(), name="totp-confirm"),
    path(
        "session/recovery-codes",
        second_factors.RecoveryCodesView.as_view(),
        name="recovery-codes",
    ),
    path("session/password", people.PasswordView.as_view(), name="password"),
    path("sessions:end-others", people.EndOtherSessionsView.as_view(), name="end-others"),
    path("signup", views.SignUpView.as_view(), name="signup"),
    path("signup/verify", views.VerifyView.as_view(), name="verify"),
    path("signup/verification", views.VerificationRequestView.as_view(), name="verification"),
]
