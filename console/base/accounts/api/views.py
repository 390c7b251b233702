"""Endpoints of accounts."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import examples, serializers
from console.base.accounts.api.authentication import PersonAuthentication
from console.base.accounts.errors import CurrentPasswordWrong, EmailTaken
from console.base.accounts.models import ApiKey, Organization, User
from console.base.common.actor import Permission
from console.base.common.api import etags
from console.base.common.api.permissions import Anyone
from console.base.common.api.views import ApiView, CreateAction, DestroyAction, ListAction


class ApiKeyViewSet(ListAction, CreateAction, DestroyAction):
    """API keys of the organization. Revoked keys stay in the list."""

    queryset = ApiKey.objects.select_related("service_account")
    serializer_class = serializers.ApiKeySerializer
    input_serializers = {
        "create": serializers.ApiKeyCreateSerializer,
        "rotate": serializers.ApiKeyRotateSerializer,
    }
    output_serializers = {
        "create": serializers.ApiKeyCreatedSerializer,
        "rotate": serializers.ApiKeyCreatedSerializer,
    }
    query_serializers = {"list": serializers.ApiKeyListQuerySerializer}
    permissions_required = dict.fromkeys(("create", "rotate", "destroy"), Permission.MANAGE)
    lookup_value_regex = "key_[a-z2-7]+"
    examples = {
        "list": examples.API_KEYS,
        "create": examples.CREATE_API_KEY,
        "rotate": examples.ROTATE_API_KEY,
    }

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lists API keys, newest first, revoked ones too."""
        return super().list(request, *args, **kwargs)

    def filter_queryset(self, queryset: Any) -> Any:
        """Narrows a list to the service account that the query names."""
        if self._action() != "list":
            return queryset
        return queryset.filter(**self.query())

    @extend_schema(responses={201: serializers.ApiKeyCreatedSerializer})
    def rotate(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Makes a new key with the same rights, whose secret is shown only now.

        The old key ends after `overlap_s` seconds.
        """
        key, data = self.get_object(), self.validated_input()
        new_key = services.rotate_api_key(actor=self.actor, key=key, **data)
        return self.answer(new_key, status=201)

    def perform_create(self, data: dict[str, Any]) -> object:
        """Creates a key; its secret is shown only now."""
        return services.create_api_key(actor=self.actor, **data)

    def perform_destroy(self, instance: ApiKey) -> None:
        """Revokes the key: the next request with it is refused."""
        services.revoke_api_key(actor=self.actor, key=instance)


class CurrentOrganizationView(ApiView):
    """The organization of the API key, or the one that the session works in."""

    serializer_class = serializers.OrganizationSerializer
    input_serializers = {"PATCH": serializers.OrganizationUpdateSerializer}
    query_serializers = {"PATCH": serializers.ForceQuerySerializer}
    permissions_required = {"GET": Permission.BELONG, "PATCH": Permission.MANAGE}
    examples = {"GET": examples.ORGANIZATION_CURRENT, "PATCH": examples.ORGANIZATION_UPDATE}

    def get(self, request: Request) -> Response:
        """Shows the organization."""
        return self.answer(Organization.objects.for_organization(self.organization_id).get())

    def patch(self, request: Request) -> Response:
        """Changes the name, the allowed networks, or whether a second factor is required."""
        rows = Organization.objects.for_organization(self.organization_id).select_for_update()
        organization = rows.get()
        etags.check_if_match(request, organization)
        data = self.validated_input(partial=True)
        force = self.query()["force"]
        return self.answer(
            services.update_organization(
                actor=self.actor, organization=organization, changes=data, force=force
            )
        )


class SignUpView(ApiView):
    """Sign-up: an account, an organization and its first API key."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    serializer_class = serializers.SignedUpSerializer
    input_serializers = {"POST": serializers.SignUpSerializer}
    creates = True
    examples = {"POST": examples.SIGN_UP}

    def post(self, request: Request) -> Response:
        """Creates the account, and sends a mail to verify its address."""
        data = self.validated_input()
        session = data.pop("session")
        try:
            account = services.sign_up(**data, address=self.address, from_console=session)
        except EmailTaken as error:
            return self.refuse(error)
        if session:
            services.begin_session(request=request._request, user=account.user)
        response = self.answer(account, status=201)
        if session:
            services.remember_device(request._request, response, account.user)
        return response


class VerifyView(ApiView):
    """The link of the mail that verifies an address."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (Anyone,)
    serializer_class = serializers.UserSerializer
    input_serializers = {"POST": serializers.VerifySerializer}
    examples = {"POST": examples.VERIFY}

    def post(self, request: Request) -> Response:
        """Verifies the address by the mail's token. Repeating it changes nothing.

        Who signed up shows it by the session, or else by `password`: the one of the sign-up.
        """
        signed_in = request.user if isinstance(request.user, User) else None
        try:
            user = services.verify_email(
                **self.validated_input(), signed_in=signed_in, address=self.address
            )
        except CurrentPasswordWrong as error:
            return self.refuse(error)
        return self.answer(user)


class VerificationRequestView(ApiView):
    """A new mail for an address that is not verified."""

    authentication_classes = ()
    permission_classes = (Anyone,)
    input_serializers = {"POST": serializers.VerificationRequestSerializer}
    examples = {"POST": examples.VERIFICATION}

    def post(self, request: Request) -> Response:
        """Sends the mail if there is such an account; the answer is the same if not."""
        services.request_verification(**self.validated_input(), address=self.address)
        return Response(status=204)
