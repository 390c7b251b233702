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
        """Returns no user and the key's actor, or None without the header.

        Raises `NotAuthenticated` for a key that is not valid, and what `admit_actor` raises.
        """
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != SCHEME:
            message = "The scheme of Authorization is Bearer."
            raise NotAuthenticated(message)
        actor = services.authenticate_key(
            text=text.strip(), address=client_address(request._request)
        )
        services.admit_actor(actor=actor, method=request.method or "", second_factor=False)
        return None, actor

    def authenticate_header(self, request: Request) -> str:
        """The `WWW-Authenticate` header of a 401."""
        return 'Bearer realm="freshet"'


class PersonAuthentication(SessionAuthentication):
    """The session cookie; a request that changes something needs the CSRF header as well.

    It is for endpoints of a person, whatever organization they work in. `request.auth` is the
    `UserSession`.
    """

    def authenticate(self, request: Request) -> tuple[User, Any] | None:
        """Returns the signed-in user and the session, or None. Raises `PermissionDenied` (CSRF)."""
        session = services.current_session(request._request)
        if session is None:
            return None
        try:
            self.enforce_csrf(request)
        except FrameworkPermissionDenied as error:
            raise PermissionDenied(str(error.detail)) from error
        return session.user, session


class ConsoleSessionAuthentication(PersonAuthentication):
    """The session cookie, for endpoints of an organization: `request.auth` is an `Actor`."""

    def authenticate(self, request: Request) -> tuple[User, Any] | None:
        """Returns the signed-in user and their actor in the session's organization, or None."""
        signed_in = super().authenticate(request)
        if signed_in is None:
            return None
        user, session = signed_in
        actor = _actor_of(request._request, user)
        if actor is None:
            return None
        actor = replace(actor, session_id=session.pk)
        enter_organization(actor.organization_id)
        services.admit_actor(
            actor=actor,
            method=request.method or "",
            second_factor=session.second_factor,
            is_for_closed=_is_for_closed(request),
        )
        return user, actor


def _is_for_closed(request: Request) -> bool:
    """Whether the view takes this method of closed organizations too."""
    view = (request.parser_context or {}).get("view")
    return request.method in getattr(view, "for_closed", ())


def _actor_of(request: HttpRequest, user: User) -> Actor | None:
    """Returns the user's actor in the organization that the session works in.

    A read stores the organization in the session; where the user no longer belongs to the stored
    one, it stores another of theirs. A change never falls back to another organization: it would go
    to one that its sender did not look at.
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
    """Allows any session, and no API key: for endpoints of a person."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Raises `NotAuthenticated` without a session."""
        if not isinstance(request.auth, UserSession):
            raise NotAuthenticated
        return True


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI file describes authentication by an API key."""

    target_class = ApiKeyAuthentication
    name = "api_key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Returns the scheme of a bearer token."""
        return {"type": "http", "scheme": "bearer", "description": "An API key of an organization."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI file describes authentication by the console's session."""

    target_class = ConsoleSessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Returns the scheme of a cookie."""
        return dict(COOKIE)


class PersonScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI file describes endpoints of a person, which no API key may call."""

    target_class = PersonAuthentication
    name = "person"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Returns the scheme of a cookie."""
        return dict(COOKIE)
