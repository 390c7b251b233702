"""Who makes a request: an API key, or a session of the console.

Both set the tenancy scope of the request's transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied as FrameworkPermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from console.base.accounts import services
from console.base.accounts.models import User, UserSession
from console.base.common.actor import Actor
from console.base.common.errors import NotAuthenticated, PermissionDenied
from console.base.common.requests import client_address
from console.base.common.tenancy import enter_organization

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema
    from rest_framework.views import APIView

SCHEME = "bearer"
COOKIE = {
    "type": "apiKey",
    "in": "cookie",
    "name": "freshet_session",
    "description": "The console's session; changes need the header X-CSRFToken too.",
}


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer fk_…`."""

    def authenticate(self, request: Request) -> tuple[User | None, Actor] | None:
        """The key's actor; None without the header; `NotAuthenticated` for a bad one."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != SCHEME:
            message = "The scheme of Authorization is Bearer."
            raise NotAuthenticated(message)
        actor = services.authenticate_key(
            text=text.strip(), address=client_address(request._request)
        )
        services.admit(actor=actor, method=request.method or "", second_factor=False)
        return None, actor

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        del request
        return 'Bearer realm="freshet"'


class PersonAuthentication(SessionAuthentication):
    """The session cookie; changes need the CSRF header as well.

    For what is the person's own, whatever organisation they work in: `request.auth` is the session.
    """

    def authenticate(self, request: Request) -> tuple[User, Any] | None:
        """The signed-in user, and their session."""
        session = services.current_session(request._request)
        if session is None:
            return None
        try:
            self.enforce_csrf(request)
        except FrameworkPermissionDenied as error:
            raise PermissionDenied(str(error.detail)) from error
        return session.user, session


class ConsoleSessionAuthentication(PersonAuthentication):
    """The session, acting in one of its user's organisations."""

    def authenticate(self, request: Request) -> tuple[User, Any] | None:
        """The signed-in user's actor in the session's organisation."""
        found = super().authenticate(request)
        if found is None:
            return None
        user, session = found
        actor = _actor_of(request._request, user)
        if actor is None:
            return None
        actor = replace(actor, session_id=session.pk)
        enter_organization(actor.organization_id)
        services.admit(
            actor=actor, method=request.method or "", second_factor=session.second_factor
        )
        return user, actor


def _actor_of(request: HttpRequest, user: User) -> Actor | None:
    """The user's actor in the organisation that the session works in.

    Looking at something pins the session to an organisation, and to another one where the user
    belongs to it no longer. A change never goes to another organisation than its sender saw.
    """
    session, address = request.session, client_address(request)
    chosen = session.get(services.SESSION_ORGANIZATION)
    actor = services.actor_of_user(user=user, organization_id=chosen, address=address)
    if request.method not in SAFE_METHODS:
        return actor
    if actor is None:
        actor = services.actor_of_user(user=user, organization_id=None, address=address)
    if actor is not None and actor.organization_id != chosen:
        session[services.SESSION_ORGANIZATION] = actor.organization_id
    return actor


class SignedIn(BasePermission):
    """For what is the person's own: any session will do, and no API key."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises `NotAuthenticated` without a session."""
        del view
        if not isinstance(request.auth, UserSession):
            raise NotAuthenticated
        return True


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The key in the OpenAPI file."""

    target_class = ApiKeyAuthentication
    name = "api_key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """A bearer token."""
        del auto_schema
        return {"type": "http", "scheme": "bearer", "description": "An API key of an organisation."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The console's session in the OpenAPI file."""

    target_class = ConsoleSessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """A cookie."""
        del auto_schema
        return dict(COOKIE)


class PersonScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The same for what is the person's own, which no API key opens."""

    target_class = PersonAuthentication
    name = "person"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """A cookie."""
        del auto_schema
        return dict(COOKIE)
