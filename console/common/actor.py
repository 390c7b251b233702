"""Who makes a request, and what a role may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rest_framework.request import Request

from console.common.errors import NotAuthenticated


class Role(StrEnum):
    """What a member or an API key of an organisation may do."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    BILLING = "billing"
    VIEWER = "viewer"


class Permission(StrEnum):
    """What an endpoint asks for."""

    READ = "read"
    # Clusters and all that is in them.
    WRITE = "write"
    # API keys, members, the organisation itself.
    MANAGE = "manage"
    # What only an owner does: make owners, close the organisation.
    OWN = "own"
    # Usage, invoices, budgets.
    BILLING = "billing"


GRANTS: dict[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission),
    Role.ADMIN: frozenset(Permission) - {Permission.OWN},
    Role.DEVELOPER: frozenset({Permission.READ, Permission.WRITE}),
    Role.BILLING: frozenset({Permission.READ, Permission.BILLING}),
    Role.VIEWER: frozenset({Permission.READ}),
}


class ActorKind(StrEnum):
    """How the request was authenticated."""

    API_KEY = "api_key"
    SESSION = "session"
    SYSTEM = "system"
    # A client of a cluster, by the Kafka protocol.
    KAFKA = "kafka"
    # Somebody who runs the service.
    STAFF = "staff"


@dataclass(frozen=True, slots=True)
class Access:
    """What an organisation asks of who comes in, beside a credential."""

    # Networks in CIDR notation; none: from anywhere.
    allowed_addresses: tuple[str, ...] = ()
    # Of people; keys have none.
    second_factor: bool = False
    # Nothing of it changes any more.
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: a key or a signed-in user, within one organisation."""

    kind: ActorKind
    # The key's id or the user's.
    id: str
    organization_id: str
    role: Role
    address: str = ""
    # Of a user's session, whose end is the end of what it opened.
    session_id: str = ""
    access: Access = Access()

    def may(self, permission: Permission) -> bool:
        """Tells whether the role grants a permission."""
        return permission in GRANTS[self.role]

    @property
    def name(self) -> str:
        """Who it is within its organisation, for idempotency records and the audit log."""
        return f"{self.kind}:{self.id}"


def actor_of(request: Request) -> Actor:
    """The actor that authentication found. Raises `NotAuthenticated` if there is none."""
    if isinstance(request.auth, Actor):
        return request.auth
    raise NotAuthenticated


def system_actor(organization_id: str) -> Actor:
    """The service itself, acting for an organisation: tasks and sweeps."""
    return Actor(
        kind=ActorKind.SYSTEM, id="freshet", organization_id=organization_id, role=Role.OWNER
    )
