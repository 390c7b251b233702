"""Endpoints of a person: their sessions and their password."""

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
    """What endpoints of a person share: any session may call them, in whatever organization."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (SignedIn,)
    # Answers are kept under the actor, and these requests have none.
    idempotent = False

    @property
    def session(self) -> UserSession:
        """Returns the session that authenticated the request.

        It does not check that there is one: `SignedIn` has refused such a request before with
        `NotAuthenticated`.
        """
        return cast("UserSession", self.request.auth)

    @property
    def person(self) -> User:
        """The signed-in user."""
        return self.session.user


class UserSessionViewSet(PersonMixin, ApiViewSet):
    """The person's sessions. Only a session sees them, and only those of its own user."""

    queryset = UserSession.objects.none()
    serializer_class = shapes.UserSessionSerializer
    lookup_value_regex = "ses_[a-z2-7]+"
    examples = {"list": examples.SESSIONS}

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lists the sessions, the newest first. `last_seen_at` is accurate to five minutes."""
        rows = self.paginate_queryset(services.sessions_of(self.person))
        context = {"current": self.session.pk}
        shown = shapes.UserSessionSerializer(rows, many=True, context=context)
        return self.get_paginated_response(shown.data)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ends a session: its next request is refused, and open streams end within 5 seconds."""
        services.end_session(user=self.person, session_id=kwargs["id"], address=self.address)
        return Response(status=204)


class EndOtherSessionsView(PersonMixin, ApiView):
    """All sessions of the person except the one that makes the request."""

    def post(self, request: Request) -> Response:
        """Ends all other sessions of the person."""
        services.end_sessions(user=self.person, but_for=self.session, address=self.address)
        return Response(status=204)


class PasswordView(PersonMixin, ApiView):
    """The password of the signed-in person."""

    input_serializers = {"POST": shapes.PasswordChangeSerializer}
    examples = {"POST": examples.PASSWORD_CHANGE}

    def post(self, request: Request) -> Response:
        """Changes the password and ends the person's other sessions. A mail informs the person."""
        try:
            services.change_password(
                request=request._request, session=self.session, **self.validated_input()
            )
        except CurrentPasswordWrong as error:
            return self.refuse(error)
        response = Response(status=204)
        services.remember_device(request._request, response, self.person)
        return response


class PasswordResetView(ApiView):
    """A mail for a person who forgot their password."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    idempotent = False
    input_serializers = {"POST": shapes.PasswordResetSerializer}
    examples = {"POST": examples.PASSWORD_RESET}

    def post(self, request: Request) -> Response:
        """Sends a mail with a link if there is such an account; the answer is the same if not."""
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
        """Sets the password and ends all sessions of the account. The token can be used once."""
        data = self.validated_input()
        user = services.reset_password(**data, address=self.address)
        response = Response(status=204)
        services.remember_device(request._request, response, user)
        return response


class SignInLinkView(ApiView):
    """A mail for a person who has to wait because of wrong passwords, whoever gave them."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    idempotent = False
    input_serializers = {"POST": shapes.PasswordResetSerializer}
    examples = {"POST": examples.PASSWORD_RESET}

    def post(self, request: Request) -> Response:
        """Sends a link to sign in by without a wait; the answer is the same without an account.

        The password, and a code where the account has a second factor, are asked for all the same.
        """
        services.request_sign_in_link(**self.validated_input(), address=self.address)
        return Response(status=204)
