"""Endpoints of a person's second factor."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import people_examples as examples
from console.base.accounts.api import people_serializers as shapes
from console.base.accounts.api.people import PersonMixin
from console.base.accounts.errors import CurrentPasswordWrong, SecondFactorCodeWrong
from console.base.common.api.views import ApiView


class TotpView(PersonMixin, ApiView):
    """The authenticator app of the signed-in person."""

    serializer_class = shapes.EnrolmentSerializer
    input_serializers = {
        "POST": shapes.PasswordSerializer,
        "DELETE": shapes.PasswordAndCodeSerializer,
    }
    examples = {"POST": examples.ENROLMENT, "DELETE": examples.PASSWORD_AND_CODE}

    def post(self, request: Request) -> Response:
        """Makes a new secret. It takes effect once a code of it is sent to `/session/totp/confirm`.

        Needs the password again.
        """
        data = self.validated_input()
        try:
            begun = services.begin_enrolment(user=self.person, **data, address=self.address)
        except CurrentPasswordWrong as error:
            return self.refuse(error)
        return self.answer(begun)

    def delete(self, request: Request) -> Response:
        """Removes the second factor: signing in asks for the password alone.

        Needs the password again, and a code. A mail informs the person.
        """
        try:
            services.remove_second_factor(
                session=self.session, **self.validated_input(), address=self.address
            )
        except (CurrentPasswordWrong, SecondFactorCodeWrong) as error:
            return self.refuse(error)
        return Response(status=204)


class TotpConfirmView(PersonMixin, ApiView):
    """Confirmation of a new secret by its first code."""

    serializer_class = shapes.RecoveryCodesSerializer
    input_serializers = {"POST": shapes.CodeSerializer}
    examples = {"POST": examples.TOTP_CONFIRM}

    def post(self, request: Request) -> Response:
        """Has sign-in ask for a code from now on. Other sessions end; a mail informs the person."""
        try:
            codes = services.confirm_enrolment(
                request=request._request, session=self.session, **self.validated_input()
            )
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer({"recovery_codes": codes})


class RecoveryCodesView(PersonMixin, ApiView):
    """Recovery codes, for a person who loses the authenticator app."""

    serializer_class = shapes.RecoveryCodesSerializer
    input_serializers = {"POST": shapes.CodeSerializer}
    examples = {"POST": examples.TOTP_CONFIRM}

    def post(self, request: Request) -> Response:
        """Makes new recovery codes. The older ones become invalid; a mail informs the person."""
        try:
            codes = services.renew_recovery_codes(
                session=self.session, **self.validated_input(), address=self.address
            )
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer({"recovery_codes": codes})
