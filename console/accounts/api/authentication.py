"""Who makes a request: an API key, or a session of the console.

Both set the tenancy scope of the request's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied as FrameworkPermissionDenied
from rest_framework.request import Request

from console.accounts import services
from console.accounts.models import User
from console.common.actor import Actor
from console.common.errors import NotAuthenticated, PermissionDenied
from console.common.requests import client_address
from console.common.tenancy import enter_organization

if TYPE_CHECKING:
    from drf_spectacular.openapi import AutoSchema

SCHEME = "bearer"


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
        enter_organization(actor.organization_id)
        return None, actor

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        del request
        return 'Bearer realm="freshet"'


class ConsoleSessionAuthentication(SessionAuthentication):
    """The session cookie; changes need the CSRF header as well."""

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        """The signed-in user's actor in the session's organisation."""
        user = getattr(request._request, "user", None)
        if not isinstance(user, User) or not user.is_active:
            return None
        try:
            self.enforce_csrf(request)
        except FrameworkPermissionDenied as error:
            raise PermissionDenied(str(error.detail)) from error
        actor = services.actor_of_user(
            user=user,
            organization_id=request._request.session.get(services.SESSION_ORGANIZATION),
            address=client_address(request._request),
        )
        if actor is None:
            return None
        enter_organization(actor.organization_id)
        return user, actor


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
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "freshet_session",
            "description": "The console's session; changes need the header X-CSRFToken too.",
        }
