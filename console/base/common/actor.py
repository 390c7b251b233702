"""Who makes a request, and what a role may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rest_framework.request import Request

from console.base.common.errors import NotAuthenticated, NotFound, PermissionDenied


class Role(StrEnum):
    """What somebody may do in an organisation, or in one of its projects."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    BILLING = "billing"
    VIEWER = "viewer"
    # Belongs to the organisation, and may there what roles in projects say.
    MEMBER = "member"


class Permission(StrEnum):
    """What an endpoint asks for."""

    # What everybody of the organisation may: see its name, prices and regions.
    BELONG = "belong"
    READ = "read"
    # Clusters and all that is in them.
    WRITE = "write"
    # API keys, members, the organisation itself.
    MANAGE = "manage"
    # What only an owner does: make owners, close the organisation.
    OWN = "own"
    # Usage, invoices, budgets.
    BILLING = "billing"


_MEMBER = frozenset({Permission.BELONG})
_VIEWER = _MEMBER | {Permission.READ}
GRANTS: dict[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission),
    Role.ADMIN: frozenset(Permission) - {Permission.OWN},
    Role.DEVELOPER: _VIEWER | {Permission.WRITE},
    Role.BILLING: _VIEWER | {Permission.BILLING},
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
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
    """Who acts: a key or a signed-in user, within one organisation.

    The role holds in all of the organisation. What it does not grant, a role in a project may: for
    the clusters of that project, and for all that is in them.
    """

    kind: ActorKind
    # The key's id or the user's.
    id: str
    organization_id: str
    role: Role
    address: str = ""
    # Of a user's session, whose end is the end of what it opened.
    session_id: str = ""
    access: Access = Access()
    # Project → what roles in it grant, beside what the organisation's role does.
    projects: Mapping[str, frozenset[Permission]] = field(default_factory=dict)
    # The person who acts, or who had the key made. None: nobody's in particular.
    user_id: str | None = None
    # The service account that acts, or that had the key made.
    service_account_id: str | None = None

    def may(self, permission: Permission, project_id: str | None = None) -> bool:
        """Tells whether a permission is granted in a project; without one, in the organisation."""
        return permission in self.granted(project_id)

    def may_somewhere(self, permission: Permission) -> bool:
        """Tells whether a permission is granted in the organisation or in any of its projects."""
        return self.may(permission) or any(
            permission in project for project in self.projects.values()
        )

    def projects_with(self, permission: Permission) -> frozenset[str] | None:
        """The projects that a permission is granted in; None: in all, those to come too."""
        if self.may(permission):
            return None
        return frozenset(each for each, granted in self.projects.items() if permission in granted)

    def granted(self, project_id: str | None = None) -> frozenset[Permission]:
        """All that is granted in a project; without one, in the organisation."""
        own = GRANTS[self.role]
        return own if project_id is None else own | self.projects.get(project_id, frozenset())

    def has_all_of(
        self, role: Role, projects: Mapping[str, frozenset[Permission]] | None = None
    ) -> bool:
        """Tells whether the actor may whatever this role, and this in projects, grants.

        Who hands out rights must have them: otherwise anybody could make themself an owner.
        """
        return GRANTS[role] <= self.granted() and all(
            granted <= self.granted(project_id) for project_id, granted in (projects or {}).items()
        )

    @property
    def name(self) -> str:
        """Who it is within its organisation, for idempotency records and the audit log."""
        return f"{self.kind}:{self.id}"


def actor_of(request: Request) -> Actor:
    """The actor that authentication found. Raises `NotAuthenticated` if there is none."""
    if isinstance(request.auth, Actor):
        return request.auth
    raise NotAuthenticated


def require(actor: Actor, permission: Permission, project_id: str | None = None) -> None:
    """Raises `PermissionDenied`, and `NotFound` about a project where the actor sees nothing."""
    if actor.may(permission, project_id):
        return
    if project_id is not None and not actor.may(Permission.READ, project_id):
        raise NotFound
    raise denied(actor, permission)


def denied(actor: Actor, permission: Permission) -> PermissionDenied:
    """The error that says what was missing."""
    return PermissionDenied(f"The role {actor.role} does not grant {permission}.")


def system_actor(organization_id: str) -> Actor:
    """The service itself, acting for an organisation: tasks and sweeps."""
    return Actor(
        kind=ActorKind.SYSTEM, id="freshet", organization_id=organization_id, role=Role.OWNER
    )
