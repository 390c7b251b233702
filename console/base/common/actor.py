"""Who makes a request, and what a role may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rest_framework.request import Request

from console.base.common.errors import NotAuthenticated, NotFound, PermissionDenied


class Role(StrEnum):
    """A set of permissions in an organization, or in one of its projects; `GRANTS` lists them."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    BILLING = "billing"
    # A viewer who reads records as well.
    READER = "reader"
    VIEWER = "viewer"
    # Belongs to the organization, and has further permissions only by roles in projects.
    MEMBER = "member"


class Permission(StrEnum):
    """What an endpoint requires of its caller."""

    # Everybody in the organization has it: to see its name, prices and regions.
    BELONG = "belong"
    READ = "read"
    # To read records: bytes that clients wrote. Whoever looks at clusters and bills need not.
    DATA_READ = "data.read"
    # To change clusters and all that is in them.
    WRITE = "write"
    # To change API keys, members and the organization itself.
    MANAGE = "manage"
    # Only owners have it: to make owners, and to close the organization.
    OWN = "own"
    # To see and change usage, invoices and budgets.
    BILLING = "billing"


_MEMBER = frozenset({Permission.BELONG})
_VIEWER = _MEMBER | {Permission.READ}
_READER = _VIEWER | {Permission.DATA_READ}
GRANTS: dict[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission),
    Role.ADMIN: frozenset(Permission) - {Permission.OWN},
    Role.DEVELOPER: _READER | {Permission.WRITE},
    Role.BILLING: _VIEWER | {Permission.BILLING},
    Role.READER: _READER,
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
    """What an organization requires of its actors beside a valid credential."""

    # Networks in CIDR notation that requests may come from; an empty tuple allows all.
    allowed_addresses: tuple[str, ...] = ()
    # Whether sessions need a second factor; API keys have none.
    second_factor: bool = False
    # Whether the organization was closed, and so is only read.
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a request or a change, such as a key or a signed-in user, in one organization.

    `role` holds in all of the organization. A role in a project grants more permissions, for the
    clusters of that project and all that is in them.
    """

    kind: ActorKind
    # The id of the key or the user.
    id: str
    organization_id: str
    role: Role
    address: str = ""
    # The id of the user's session, by whose end streams that it opened end too.
    session_id: str = ""
    access: Access = Access()
    # Project id → the permissions that roles in the project grant, beside those of `role`.
    projects: Mapping[str, frozenset[Permission]] = field(default_factory=dict)
    # The person who acts, or who made the key. None for the service itself and for a service
    # account's key whose maker is not a person.
    user_id: str | None = None
    # The service account that acts, or that made the key.
    service_account_id: str | None = None

    def may(self, permission: Permission, project_id: str | None = None) -> bool:
        """Returns whether a permission is granted in a project, or for None in the organization."""
        return permission in self.granted(project_id)

    def may_somewhere(self, permission: Permission) -> bool:
        """Returns whether a permission is granted in the organization or in any of its projects."""
        return self.may(permission) or any(
            permission in project for project in self.projects.values()
        )

    def projects_with(self, permission: Permission) -> frozenset[str] | None:
        """Returns ids of the projects with a permission; None for all, including later ones."""
        if self.may(permission):
            return None
        return frozenset(
            project_id for project_id, granted in self.projects.items() if permission in granted
        )

    def granted(self, project_id: str | None = None) -> frozenset[Permission]:
        """Returns all permissions in a project, or for None in the organization."""
        own = GRANTS[self.role]
        return own if project_id is None else own | self.projects.get(project_id, frozenset())

    def has_all_of(
        self, role: Role, projects: Mapping[str, frozenset[Permission]] | None = None
    ) -> bool:
        """Returns whether the actor has all permissions of a role, and those by project id.

        Whoever grants rights must have them: otherwise anybody could make themselves an owner.
        """
        return GRANTS[role] <= self.granted() and all(
            granted <= self.granted(project_id) for project_id, granted in (projects or {}).items()
        )

    @property
    def name(self) -> str:
        """The actor's kind and id in one text, for idempotency records."""
        return f"{self.kind}:{self.id}"


def actor_of(request: Request) -> Actor:
    """Returns the actor that authentication set. Raises `NotAuthenticated` if there is none."""
    if isinstance(request.auth, Actor):
        return request.auth
    raise NotAuthenticated


def require_permission(actor: Actor, permission: Permission, project_id: str | None = None) -> None:
    """Raises `PermissionDenied` if the actor lacks a permission in a project or the organization.

    Raises `NotFound` instead for a project of which the actor may read nothing.
    """
    if actor.may(permission, project_id):
        return
    if project_id is not None and not actor.may(Permission.READ, project_id):
        raise NotFound
    raise denied(actor, permission)


def denied(actor: Actor, permission: Permission) -> PermissionDenied:
    """Returns the error that names the missing permission."""
    return PermissionDenied(f"The role {actor.role} does not grant {permission}.")


def system_actor(organization_id: str) -> Actor:
    """Returns the actor of the service itself in an organization, for tasks and sweeps."""
    return Actor(
        kind=ActorKind.SYSTEM, id="freshet", organization_id=organization_id, role=Role.OWNER
    )
