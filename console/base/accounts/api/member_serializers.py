"""JSON shapes of projects, members, invitations, roles in projects and service accounts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.accounts.api.serializers import PASSWORD_CHARS_MAX, OrganizationSerializer
from console.base.accounts.choices import PROJECT_ROLES, ROLES, InvitationState, PrincipalType
from console.base.accounts.models import (
    Invitation,
    Membership,
    Project,
    RoleBinding,
    ServiceAccount,
)
from console.base.accounts.models.project import NAME_CHARS_MAX
from console.base.accounts.models.service_account import DESCRIPTION_CHARS_MAX
from console.base.accounts.models.service_account import NAME_CHARS_MAX as ACCOUNT_CHARS_MAX
from console.base.common.actor import Actor, Permission, Role
from console.base.common.api.lines import one_line
from console.base.common.ids import ID_CHARS_MAX
from console.base.runtime.texts import is_line

LABELS_MAX = 32
LABEL_CHARS_MAX = 63
USER_NAME_CHARS_MAX = 100
TOKEN_CHARS_MAX = 128
PROJECT_ROLES_MAX = 50
PERMISSIONS = [(permission.value, permission.value.capitalize()) for permission in Permission]
OWN_ROLE = "Grants at most what the caller's own grants."


class ProjectSerializer(serializers.ModelSerializer[Project]):
    """A project."""

    labels = serializers.DictField(child=serializers.CharField())
    default = serializers.BooleanField(
        source="is_default", help_text="Where clusters go that name no project."
    )
    permissions = serializers.SerializerMethodField(
        help_text="What the caller may do in it, by roles in the organization and in the project."
    )

    class Meta:
        model = Project
        fields = ("id", "name", "labels", "default", "permissions", "generation", "created_at")
        read_only_fields = fields

    def get_permissions(self, project: Project) -> list[str]:
        """The caller's permissions in the project, sorted by name."""
        actor: Actor = self.context["view"].actor
        return sorted(actor.granted(project.pk))


class ProjectUpdateSerializer(serializers.Serializer[Any]):
    """The fields to change. Fields that are left out stay as they are."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, required=False, validators=[one_line])
    labels = serializers.DictField(
        child=serializers.CharField(max_length=LABEL_CHARS_MAX, allow_blank=True),
        required=False,
        help_text="Replaces all labels.",
    )

    def validate_labels(self, labels: dict[str, str]) -> dict[str, str]:
        """Raises `ValidationError` for too many labels, or an unprintable or too long name."""
        if len(labels) > LABELS_MAX:
            message = f"At most {LABELS_MAX} labels."
            raise serializers.ValidationError(message)
        if not all(0 < len(name) <= LABEL_CHARS_MAX and is_line(name) for name in labels):
            message = f"A label's name has 1 to {LABEL_CHARS_MAX} printable characters."
            raise serializers.ValidationError(message)
        return labels


class ProjectCreateSerializer(ProjectUpdateSerializer):
    """The fields of a new project."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, validators=[one_line])


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A person's membership in the organization."""

    user_id = serializers.CharField()
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")
    role = serializers.ChoiceField(choices=ROLES)
    two_factor = serializers.SerializerMethodField(
        help_text="Whether signing in asks for a second factor."
    )
    last_seen_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When they last used the console here; accurate to five minutes.",
    )

    class Meta:
        model = Membership
        fields = (
            "id",
            "user_id",
            "email",
            "name",
            "role",
            "two_factor",
            "last_seen_at",
            "created_at",
        )
        read_only_fields = fields

    def get_two_factor(self, member: Membership) -> bool:
        """Whether the member has a second factor that is confirmed."""
        factor = getattr(member.user, "second_factor", None)
        return factor is not None and factor.confirmed_at is not None


class MemberUpdateSerializer(serializers.Serializer[Any]):
    """The member's new role."""

    role = serializers.ChoiceField(choices=ROLES, help_text=OWN_ROLE)


class InvitedRoleSerializer(serializers.Serializer[Any]):
    """A role in a project that comes with an invitation."""

    project_id = serializers.CharField(max_length=ID_CHARS_MAX)
    role = serializers.ChoiceField(
        choices=PROJECT_ROLES, help_text="Grants at most what the caller may in the project."
    )


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation. Only its mail has the token."""

    role = serializers.ChoiceField(choices=ROLES)
    state = serializers.ChoiceField(source="shown_state", choices=InvitationState.choices)
    invited_by = serializers.CharField(
        source="invited_by_id", allow_null=True, help_text="The user's id."
    )
    project_roles = InvitedRoleSerializer(many=True)

    class Meta:
        model = Invitation
        fields = (
            *("id", "email", "role", "project_roles", "state", "invited_by"),
            *("expires_at", "created_at"),
        )
        read_only_fields = fields


class InvitationCreateSerializer(serializers.Serializer[Any]):
    """The address to invite, and the roles that it gets."""

    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(choices=ROLES, default=Role.MEMBER.value, help_text=OWN_ROLE)
    project_roles = serializers.ListField(
        child=InvitedRoleSerializer(),
        required=False,
        default=list,
        max_length=PROJECT_ROLES_MAX,
        help_text="Roles in projects that come with it.",
    )


class InvitationAcceptSerializer(serializers.Serializer[Any]):
    """The token of the mail's link; password and name are for a person without an account."""

    token = serializers.CharField(max_length=TOKEN_CHARS_MAX)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX,
        trim_whitespace=False,
        write_only=True,
        required=False,
        help_text="The password of a new account.",
    )
    name = serializers.CharField(
        max_length=USER_NAME_CHARS_MAX, required=False, default="", validators=[one_line]
    )


class AcceptedSerializer(serializers.Serializer[Any]):
    """The organization that the person joined, and their membership."""

    organization = OrganizationSerializer()
    member = MemberSerializer()


class RoleBindingSerializer(serializers.ModelSerializer[RoleBinding]):
    """A role in a project. It adds to what the role in the organization grants."""

    principal_type = serializers.ChoiceField(choices=PrincipalType.choices)
    principal_id = serializers.CharField(help_text="The user's id, or the service account's.")
    project_id = serializers.CharField()
    role = serializers.ChoiceField(choices=PROJECT_ROLES)

    class Meta:
        model = RoleBinding
        fields = ("id", "principal_type", "principal_id", "project_id", "role", "created_at")
        read_only_fields = fields


class RoleBindingCreateSerializer(serializers.Serializer[Any]):
    """The principal, the project and the role that it gets there."""

    principal_type = serializers.ChoiceField(choices=PrincipalType.choices)
    principal_id = serializers.CharField(
        max_length=ID_CHARS_MAX,
        help_text="The id of a member's user, or of a service account.",
    )
    project_id = serializers.CharField(max_length=ID_CHARS_MAX)
    role = serializers.ChoiceField(
        choices=PROJECT_ROLES, help_text="Grants at most what the caller may in the project."
    )


class RoleBindingQuerySerializer(serializers.Serializer[Any]):
    """Filters of a list of roles in projects."""

    project_id = serializers.CharField(required=False, help_text="Shows roles in this project.")
    principal_id = serializers.CharField(
        required=False, help_text="Shows roles of this user or service account."
    )


class ServiceAccountSerializer(serializers.ModelSerializer[ServiceAccount]):
    """A service account."""

    role = serializers.ChoiceField(choices=ROLES)

    class Meta:
        model = ServiceAccount
        fields = ("id", "name", "description", "role", "disabled", "generation", "created_at")
        read_only_fields = fields


class ServiceAccountUpdateSerializer(serializers.Serializer[Any]):
    """The fields to change. Fields that are left out stay as they are."""

    name = serializers.CharField(
        max_length=ACCOUNT_CHARS_MAX, required=False, validators=[one_line]
    )
    description = serializers.CharField(
        max_length=DESCRIPTION_CHARS_MAX, required=False, allow_blank=True
    )
    role = serializers.ChoiceField(choices=ROLES, required=False, help_text=OWN_ROLE)
    disabled = serializers.BooleanField(
        required=False, help_text="While it is true, none of the account's keys authenticates."
    )


class ServiceAccountCreateSerializer(serializers.Serializer[Any]):
    """The fields of a new service account."""

    name = serializers.CharField(max_length=ACCOUNT_CHARS_MAX, validators=[one_line])
    description = serializers.CharField(
        max_length=DESCRIPTION_CHARS_MAX, required=False, default="", allow_blank=True
    )
    role = serializers.ChoiceField(choices=ROLES, default=Role.MEMBER.value, help_text=OWN_ROLE)
