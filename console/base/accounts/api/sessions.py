"""The console's session: sign in and out, who is signed in, in which organization."""

from __future__ import annotations

from django.http import HttpRequest
from django.middleware.csrf import get_token
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import examples, serializers
from console.base.accounts.api.authentication import PersonAuthentication
from console.base.accounts.errors import CodeWrong, InvalidCredentials
from console.base.accounts.models import Membership, User
from console.base.common.api.permissions import Anyone
from console.base.common.api.views import ApiView
from console.base.common.errors import NotAuthenticated


def session_of(request: HttpRequest) -> dict[str, object]:
    """Returns the members that `SessionSerializer` shows of a request's session."""
    session = services.current_session(request)
    user = session.user if session is not None else None
    memberships = services.organizations_of(user) if user is not None else []
    chosen = request.session.get(services.SESSION_ORGANIZATION)
    current = next(
        (membership for membership in memberships if membership.organization_id == chosen), None
    )
    current = current or next(iter(memberships), None)
    return {
        "user": user,
        "organizations": [_with_role(membership) for membership in memberships],
        "organization": _with_role(current) if current else None,
        "csrf_token": get_token(request),
    }


def _with_role(membership: Membership) -> object:
    membership.organization.role = membership.role  # type: ignore[attr-defined]
    return membership.organization


class SessionView(ApiView):
    """The session of the cookie. Reading it needs no credential."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (Anyone,)
    serializer_class = serializers.SessionSerializer
    input_serializers = {
        "POST": serializers.SignInSerializer,
        "PATCH": serializers.SwitchSerializer,
    }
    idempotent = False
    examples = {
        "GET": [examples.SESSION],
        "POST": examples.SIGN_IN,
        "PATCH": examples.SWITCH,
    }
    signs_in = ("POST", "PATCH")

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Ignores an older session when somebody signs in: it may be another person's."""
        if self.request is not None and self.request.method == "POST":
            return []
        return [PersonAuthentication()]

    def get(self, request: Request) -> Response:
        """Shows who is signed in, and the CSRF token that changes need."""
        return self.answer(session_of(request._request))

    def post(self, request: Request) -> Response:
        """Signs in. After `code_required`, repeat it with a code of the authenticator app."""
        try:
            user = services.sign_in(
                request=request._request, **self.validated_input(), address=self.address
            )
        except (InvalidCredentials, CodeWrong) as error:
            return self.refuse(error)
        response = self.answer(session_of(request._request))
        services.remember_device(request._request, response, user)
        return response

    def patch(self, request: Request) -> Response:
        """Has the session work in another of the user's organizations."""
        if not isinstance(request.user, User):
            raise NotAuthenticated
        services.switch_organization(
            request=request._request, user=request.user, **self.validated_input()
        )
        return self.answer(session_of(request._request))

    def delete(self, request: Request) -> Response:
        """Signs out."""
        services.sign_out(request=request._request)
        return Response(status=204)
