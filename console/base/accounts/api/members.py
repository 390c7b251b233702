"""Endpoints of members and invitations."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import member_examples as examples
from console.base.accounts.api import member_serializers as shapes
from console.base.accounts.api.authentication import PersonAuthentication
from console.base.accounts.models import Invitation, Membership, User
from console.base.common.actor import ActorKind, Permission
from console.base.common.api.permissions import Anyone
from console.base.common.api.views import (
    ApiView,
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)


class MemberViewSet(ListAction, RetrieveAction, UpdateAction, DestroyAction):
    """People who belong to the organization.

    A person who may not read the organization sees only themselves, unless they manage a project:
    then they see everybody to whom they may give roles in it.
    """

    queryset = Membership.objects.select_related("user", "user__second_factor")
    serializer_class = shapes.MemberSerializer
    input_serializers = {"partial_update": shapes.MemberUpdateSerializer}
    permissions_required = {
        "list": Permission.BELONG,
        "retrieve": Permission.BELONG,
        "partial_update": Permission.MANAGE,
        # Members may remove themselves; removing others needs `manage`.
        "destroy": Permission.BELONG,
    }
    list_ordering = ("created_at", "id")
    lookup_value_regex = "mem_[a-z2-7]+"
    examples = examples.MEMBERS

    def get_queryset(self) -> Any:
        """The members that the actor may see."""
        members = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return members
        actor = self.actor
        if actor.may(Permission.READ) or actor.may_somewhere(Permission.MANAGE):
            return members
        own = actor.id if actor.kind is ActorKind.SESSION else None
        return members.filter(user_id=own)

    def perform_update(self, instance: Membership, data: dict[str, Any]) -> object:
        """Gives the member another role. Their keys and invitations that grant more end."""
        role = data.get("role", instance.role)
        return services.update_member(actor=self.actor, member=instance, role=role)

    def perform_destroy(self, instance: Membership) -> None:
        """Removes the member: their sessions, roles in projects and own keys end."""
        services.remove_member(actor=self.actor, member=instance)


class InvitationViewSet(ListAction, CreateAction, DestroyAction):
    """Invitations by mail, which are valid for seven days and can be accepted once."""

    queryset = Invitation.objects.all()
    serializer_class = shapes.InvitationSerializer
    input_serializers = {"create": shapes.InvitationCreateSerializer}
    permissions_required = dict.fromkeys(("create", "destroy", "resend"), Permission.MANAGE)
    lookup_value_regex = "ivt_[a-z2-7]+"
    examples = examples.INVITATIONS

    def perform_create(self, data: dict[str, Any]) -> object:
        """Creates the invitation and sends its mail."""
        return services.create_invitation(actor=self.actor, **data)

    def perform_destroy(self, instance: Invitation) -> None:
        """Revokes the invitation: the mail's link becomes invalid."""
        services.revoke_invitation(actor=self.actor, invitation=instance)

    @extend_schema(responses={200: shapes.InvitationSerializer})
    def resend(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Sends the mail again, valid for seven days from now; links of earlier mails end."""
        invitation = self.get_object()
        return self.answer(services.resend_invitation(actor=self.actor, invitation=invitation))


class InvitationAcceptView(ApiView):
    """Acceptance of an invitation by the link in its mail."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (Anyone,)
    serializer_class = shapes.AcceptedSerializer
    input_serializers = {"POST": shapes.InvitationAcceptSerializer}
    creates = True
    examples = {"POST": examples.ACCEPT}

    def post(self, request: Request) -> Response:
        """Joins the organization: the signed-in person, or a new account, which is then signed in.

        Answers 409 `account_exists` if the invited address has an account: sign in first.
        """
        user = request.user if isinstance(request.user, User) else None
        data = self.validated_input()
        accepted = services.accept_invitation(
            token=data["token"],
            user=user,
            password=data.get("password"),
            name=data["name"],
            address=self.address,
        )
        if accepted.new_user:
            services.begin_session(request=request._request, user=accepted.member.user)
        session = request._request.session
        session[services.SESSION_ORGANIZATION] = accepted.organization.pk
        return self.answer(accepted, status=status.HTTP_201_CREATED)
