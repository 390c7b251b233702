"""JSON shapes of accounts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.accounts import services
from console.base.accounts.addresses import NETWORKS_MAX, NetworkInvalid, read_network
from console.base.accounts.choices import ROLES, AccountStatus, TrafficLimitKind
from console.base.accounts.models import ApiKey, Organization
from console.base.accounts.models.api_key import NAME_CHARS_MAX
from console.base.accounts.models.organization import NAME_CHARS_MAX as ORGANIZATION_CHARS_MAX
from console.base.common.api.lines import no_address, one_line
from console.base.common.ids import ID_CHARS_MAX

PASSWORD_CHARS_MAX = 256
LINK_CHARS_MAX = 1024
OVERLAP_S_DEFAULT = 3600
OVERLAP_S_MAX = 30 * 24 * 3600


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    """An API key, without its secret."""

    role = serializers.ChoiceField(
        source="effective_role",
        choices=ROLES,
        help_text="Its own, or its service account's current one.",
    )
    service_account_id = serializers.CharField(allow_null=True)

    class Meta:
        model = ApiKey
        fields = (
            "id",
            "name",
            "role",
            "service_account_id",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        )
        read_only_fields = fields


class ApiKeyCreatedSerializer(serializers.Serializer[Any]):
    """A new key with its secret, which is shown only now."""

    id = serializers.CharField(source="key.id")
    name = serializers.CharField(source="key.name")
    role = serializers.ChoiceField(source="key.effective_role", choices=ROLES)
    service_account_id = serializers.CharField(source="key.service_account_id", allow_null=True)
    created_at = serializers.DateTimeField(source="key.created_at")
    expires_at = serializers.DateTimeField(source="key.expires_at", allow_null=True)
    secret = serializers.CharField(help_text="The bearer token. It cannot be read again.")


class ApiKeyCreateSerializer(serializers.Serializer[Any]):
    """The fields of a new key."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, validators=[one_line])
    role = serializers.ChoiceField(
        choices=ROLES,
        required=False,
        help_text="At most the caller's own; without it, admin. Not allowed beside a service "
        "account: its keys have the account's role and roles in projects.",
    )
    service_account_id = serializers.CharField(
        max_length=ID_CHARS_MAX, required=False, allow_null=True, default=None
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class ApiKeyRotateSerializer(serializers.Serializer[Any]):
    """How a key is replaced."""

    overlap_s = serializers.IntegerField(
        min_value=0,
        max_value=OVERLAP_S_MAX,
        default=OVERLAP_S_DEFAULT,
        help_text="After how many seconds the old key ends.",
    )
    expires_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="When the new key expires. Without it, it lives as long as the old one was to.",
    )


class ApiKeyListQuerySerializer(serializers.Serializer[Any]):
    """Filters of a list of keys."""

    service_account_id = serializers.CharField(
        required=False, help_text="Shows keys of this service account."
    )


class NetworkField(serializers.CharField):
    """A network in CIDR notation, or a single address."""

    def to_internal_value(self, data: Any) -> str:
        """Returns the network's canonical notation. Raises `ValidationError`."""
        try:
            return read_network(super().to_internal_value(data))
        except NetworkInvalid as error:
            raise serializers.ValidationError(str(error)) from error


class TrafficLimitSerializer(serializers.Serializer[Any]):
    """A limit of what clients produce and fetch. All else that clients and people do goes on."""

    kind = serializers.ChoiceField(
        choices=TrafficLimitKind.choices,
        help_text="`refuse`: produce and fetch are refused. `throttle`: both are slowed down.",
    )
    reason = serializers.CharField(help_text="Why, and what ends it. Clients are shown it.")
    bytes_per_s = serializers.IntegerField(
        allow_null=True,
        help_text="Only of `throttle`: bytes a second of produce and fetch together, of a cluster.",
    )


class OrganizationSerializer(serializers.Serializer[Any]):
    """An organization."""

    id = serializers.CharField()
    name = serializers.CharField()
    standing = serializers.ChoiceField(choices=AccountStatus.choices, source="account_status")
    verified = serializers.SerializerMethodField(
        help_text="Whether an owner proved to own an address: before that its clusters have no "
        "public endpoint (but on one machine)."
    )
    produce_suspended_reason = serializers.SerializerMethodField(
        help_text="Why its clusters refuse produce; null if they do not."
    )
    traffic_limit = TrafficLimitSerializer(
        allow_null=True,
        help_text="What its clusters do with the traffic of clients; null if nothing limits it.",
    )
    allowed_addresses: Any = serializers.ListField(
        child=serializers.CharField(),
        help_text="Networks that API keys and people may come from; empty: from anywhere.",
    )
    two_factor_required = serializers.BooleanField(
        help_text="Whether sessions without a second factor are refused."
    )
    closed_at = serializers.DateTimeField(
        allow_null=True, help_text="When its owner closed it. Since then it can only be read."
    )
    generation = serializers.IntegerField()
    created_at = serializers.DateTimeField()

    def get_produce_suspended_reason(self, organization: Organization) -> str | None:
        """Why its clusters refuse produce."""
        limit = organization.traffic_limit
        return limit.reason if limit is not None and limit.refuses_produce else None

    def get_verified(self, organization: Organization) -> bool:
        """Whether an owner proved to own an address."""
        return organization.verified_at is not None


class OrganizationUpdateSerializer(serializers.Serializer[Any]):
    """The fields of an organization to change."""

    name = serializers.CharField(
        max_length=ORGANIZATION_CHARS_MAX, validators=[one_line, no_address]
    )
    allowed_addresses = serializers.ListField(
        child=NetworkField(),
        max_length=NETWORKS_MAX,
        help_text="IPv4 and IPv6 networks in CIDR notation. Empty: from anywhere.",
    )
    two_factor_required = serializers.BooleanField()


class CloseSerializer(serializers.Serializer[Any]):
    """The confirmation that an organization shall be closed."""

    name = serializers.CharField(
        max_length=ORGANIZATION_CHARS_MAX, help_text="The organization's name, typed by the person."
    )
    code = serializers.CharField(
        max_length=40,
        allow_null=True,
        default=None,
        write_only=True,
        help_text="A code of the authenticator app, if the person has one.",
    )


class ForceQuerySerializer(serializers.Serializer[Any]):
    """Whether a change is made that locks the caller out."""

    force = serializers.BooleanField(
        default=False, help_text="Make the change even if it locks out the caller."
    )


class SignUpSerializer(serializers.Serializer[Any]):
    """The fields of a new account and its organization."""

    email = serializers.EmailField(max_length=254)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )
    organization_name = serializers.CharField(
        max_length=ORGANIZATION_CHARS_MAX, validators=[one_line, no_address]
    )
    session = serializers.BooleanField(
        default=False,
        help_text="Sign in as well, and make a first cluster with a sample topic (the console).",
    )


class SignedUpSerializer(serializers.Serializer[Any]):
    """The organization and the API key that a sign-up made. The secret is shown only now."""

    organization = OrganizationSerializer()
    api_key = ApiKeyCreatedSerializer()


class VerifySerializer(serializers.Serializer[Any]):
    """The token of the mail's link, and without the account's session its password."""

    token = serializers.CharField(max_length=LINK_CHARS_MAX)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX,
        trim_whitespace=False,
        allow_null=True,
        default=None,
        write_only=True,
        help_text="The password of the sign-up; not needed in a session of the account.",
    )


class VerificationRequestSerializer(serializers.Serializer[Any]):
    """The address to send the mail to again."""

    email = serializers.EmailField(max_length=254)


class UserSerializer(serializers.Serializer[Any]):
    """A person."""

    id = serializers.CharField()
    email = serializers.EmailField()
    name = serializers.CharField()
    email_verified = serializers.SerializerMethodField()
    two_factor = serializers.SerializerMethodField(help_text="Whether signing in asks for a code.")
    is_staff = serializers.BooleanField(help_text="Whether the person runs the service.")

    def get_email_verified(self, user: Any) -> bool:
        """Whether the person proved to own the address."""
        return user.email_verified_at is not None

    def get_two_factor(self, user: Any) -> bool:
        """Whether the person has a second factor."""
        return services.has_second_factor(user)


class SignInSerializer(serializers.Serializer[Any]):
    """The address and the password of an account, and a code if it has a second factor."""

    email = serializers.EmailField(max_length=254)
    password = serializers.CharField(
        max_length=PASSWORD_CHARS_MAX, trim_whitespace=False, write_only=True
    )

    code = serializers.CharField(
        max_length=40,
        allow_null=True,
        default=None,
        write_only=True,
        help_text="A code of the authenticator app or a recovery code, if the account has them.",
    )
    link = serializers.CharField(
        max_length=LINK_CHARS_MAX,
        allow_null=True,
        default=None,
        write_only=True,
        help_text="The token behind `#` in the link of the mail that `POST /session/link` sends.",
    )


class SwitchSerializer(serializers.Serializer[Any]):
    """Which of the user's organizations the session shall work in."""

    organization_id = serializers.CharField(max_length=32)


class MembershipSerializer(OrganizationSerializer):
    """An organization, and the user's role in it."""

    # A session lists organizations that may refuse its address: their networks are not shown to it.
    allowed_addresses = None
    role = serializers.ChoiceField(choices=ROLES)


class SessionSerializer(serializers.Serializer[Any]):
    """The signed-in person, or null, with their organizations."""

    user = UserSerializer(allow_null=True)
    organizations = MembershipSerializer(many=True)
    organization = MembershipSerializer(
        allow_null=True, help_text="The one that the session works in."
    )
    csrf_token = serializers.CharField(help_text="The value of the header X-CSRFToken of changes.")
