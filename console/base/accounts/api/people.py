"""Endpoints of what is a person's own: their sessions and their password."""

from __future__ import annotations

from typing import Any, cast

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import people_examples as examples
from console.base.accounts.api import people_serializers as shapes
from console.base.accounts.api.authentication import PersonAuthentication, SignedIn
from console.base.accounts.errors import CurrentPasswordWrong
from console.base.accounts.models import User, UserSession
from console.base.common.api.permissions import Anyone
from console.base.common.api.views import ApiMixin, ApiView, ApiViewSet


class PersonMixin(ApiMixin):
    """For who is signed in, in whatever organisation, or in none."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (SignedIn,)
    # An answer would be kept for an actor, which nobody is here.
    idempotent = False

    @property
    def session(self) -> UserSession:
        """The session of the request."""
        return cast("UserSession", self.request.auth)

    @property
    def person(self) -> User:
        """Who is signed in."""
        return self.session.user


class UserSessionViewSet(PersonMixin, ApiViewSet):
    """Where the person is signed in. Only a session sees them, and only its own user's."""

    queryset = UserSession.objects.none()
    serializer_class = shapes.UserSessionSerializer
    lookup_value_regex = "ses_[a-z2-7]+"
    examples = {"list": examples.SESSIONS}

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The sessions, the newest first. `last_seen_at` is right to five minutes."""
        del request, args, kwargs
        rows = self.paginate_queryset(services.sessions_of(self.person))
        context = {"current": self.session.pk}
        shown = shapes.UserSessionSerializer(rows, many=True, context=context)
        return self.get_paginated_response(shown.data)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ends a session: its next request is refused, and open streams end within 5 seconds."""
        del request, args
        services.end_session(user=self.person, session_id=kwargs["id"], address=self.address)
        return Response(status=204)


class EndOtherSessionsView(PersonMixin, ApiView):
    """All sessions of the person but the one that asks."""

    def post(self, request: Request) -> Response:
        """Ends them."""
        del request
        services.end_sessions(user=self.person, but_for=self.session, address=self.address)
        return Response(status=204)


class PasswordView(PersonMixin, ApiView):
    """The password of who is signed in."""

    input_serializers = {"POST": shapes.PasswordChangeSerializer}
    examples = {"POST": examples.PASSWORD_CHANGE}

    def post(self, request: Request) -> Response:
        """Changes it, and ends the person's other sessions. A mail tells them."""
        try:
            services.change_password(
                request=request._request, session=self.session, **self.validated_input()
            )
        except CurrentPasswordWrong as error:
            return self.refuse(error)
        return Response(status=204)


class PasswordResetView(ApiView):
    """A new password for who forgot theirs."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    idempotent = False
    input_serializers = {"POST": shapes.PasswordResetSerializer}
    examples = {"POST": examples.PASSWORD_RESET}

    def post(self, request: Request) -> Response:
        """Sends a mail with a link if there is such an account, and does not tell."""
        del request
        services.request_password_reset(**self.validated_input(), address=self.address)
        return Response(status=204)


class PasswordResetConfirmView(ApiView):
    """The link of the mail that sets a new password."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    idempotent = False
    input_serializers = {"POST": shapes.PasswordResetConfirmSerializer}
    examples = {"POST": examples.PASSWORD_RESET_CONFIRM}

    def post(self, request: Request) -> Response:
        """Sets it and ends all sessions of the account. The token is used up; sign in next."""
        data = self.validated_input()
        user = services.reset_password(**data, address=self.address)
        response = Response(status=204)
        services.remember_device(request._request, response, user.email)
        return response
