"""The console's sessions."""

from __future__ import annotations

from django.contrib import auth
from django.http import HttpRequest

from console.accounts.errors import InvalidCredentials
from console.accounts.models import Membership, User
from console.accounts.models.user import normal_email
from console.accounts.services.limits import check_address, note_address
from console.common.conf import config
from console.common.errors import NotFound
from console.common.tenancy import system_scope

# The session's member that names the organisation that the person works in.
SESSION_ORGANIZATION = "organization_id"


def sign_in(*, request: HttpRequest, email: str, password: str, address: str) -> User:
    """Begins a session under a fresh key.

    Raises `TooManyRequests`, and `InvalidCredentials`, before which the attempt has been counted
    against the address. An unknown address takes as long as a wrong password.
    """
    limit = config().limits.signins_failed_per_address
    check_address(kind="signin_failed", address=address, limit=limit)
    user = auth.authenticate(request, username=normal_email(email), password=password)
    if not isinstance(user, User):
        note_address(kind="signin_failed", address=address)
        raise InvalidCredentials
    begin_session(request=request, user=user)
    return user


def begin_session(*, request: HttpRequest, user: User) -> None:
    """Signs in somebody who has just proved who they are, under a fresh key of the session."""
    auth.login(request, user, backend="django.contrib.auth.backends.ModelBackend")


def sign_out(*, request: HttpRequest) -> None:
    """Ends the session and forgets what it held."""
    auth.logout(request)


def organizations_of(user: User) -> list[Membership]:
    """A user's memberships with their organisations, the first joined first."""
    with system_scope():
        return list(
            Membership.objects.filter(user=user)
            .select_related("organization")
            .order_by("created_at", "id")
        )


def switch_organization(*, request: HttpRequest, user: User, organization_id: str) -> None:
    """Makes another of the user's organisations the session's. Raises `NotFound`."""
    if organization_id not in {each.organization_id for each in organizations_of(user)}:
        raise NotFound
    request.session[SESSION_ORGANIZATION] = organization_id
