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
    """The authenticator app of who is signed in."""

    serializer_class = shapes.EnrolmentSerializer
    input_serializers = {
        "POST": shapes.PasswordSerializer,
        "DELETE": shapes.PasswordAndCodeSerializer,
    }
    examples = {"POST": examples.ENROLMENT, "DELETE": examples.PASSWORD_AND_CODE}

    def post(self, request: Request) -> Response:
        """A new secret. It counts once a code of it was sent to `/session/totp/confirm`.

        Needs the password again.
        """
        del request
        data = self.validated_input()
        try:
            begun = services.begin_enrolment(user=self.person, **data, address=self.address)
        except CurrentPasswordWrong as error:
            return self.refuse(error)
        return self.answer(begun)

    def delete(self, request: Request) -> Response:
        """Has signing in ask for the password alone; a mail tells the person.

        Needs the password again, and a code.
        """
        del request
        try:
            services.remove_second_factor(
                session=self.session, **self.validated_input(), address=self.address
            )
        except (CurrentPasswordWrong, SecondFactorCodeWrong) as error:
            return self.refuse(error)
        return Response(status=204)


class TotpConfirmView(PersonMixin, ApiView):
    """The end of an enrolment."""

    serializer_class = shapes.RecoveryCodesSerializer
    input_serializers = {"POST": shapes.CodeSerializer}
    examples = {"POST": examples.TOTP_CONFIRM}

    def post(self, request: Request) -> Response:
        """From now on signing in asks for a code. Other sessions end; a mail tells the person."""
        try:
            codes = services.confirm_enrolment(
                request=request._request, session=self.session, **self.validated_input()
            )
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer({"recovery_codes": codes})


class RecoveryCodesView(PersonMixin, ApiView):
    """Codes for who loses the authenticator app."""

    serializer_class = shapes.RecoveryCodesSerializer
    input_serializers = {"POST": shapes.CodeSerializer}
    examples = {"POST": examples.TOTP_CONFIRM}

    def post(self, request: Request) -> Response:
        """New ones. The older ones have no effect any more; a mail tells the person."""
        del request
        try:
            codes = services.renew_recovery_codes(
                session=self.session, **self.validated_input(), address=self.address
            )
        except SecondFactorCodeWrong as error:
            return self.refuse(error)
        return self.answer({"recovery_codes": codes})
