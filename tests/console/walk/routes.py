"""A route's arguments, and which answers each actor may expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from console.base.common.actor import Permission
from console.base.common.ids import new_id
from tests.console.factories import Tenant


class WhoCalls(StrEnum):
    """The kinds of actor as which every route is called."""

    ANONYMOUS = "anonymous"
    OTHER_TENANT = "other tenant"
    VIEWER = "viewer"
    ADMIN = "admin"
    REVOKED = "revoked key"
    EXPIRED = "expired key"
    # Belong to the organization, and have a role in the project of the resources.
    PROJECT_DEVELOPER = "developer of the project"
    PROJECT_VIEWER = "viewer of the project"
    # A session of a member, where the two above are keys of service accounts.
    PROJECT_MEMBER = "member who develops the project"
    # Belong to the organization, and have a role in another project of it.
    OTHER_DEVELOPER = "developer of another project"
    OTHER_VIEWER = "viewer of another project"


OF_ANOTHER = frozenset({WhoCalls.OTHER_DEVELOPER, WhoCalls.OTHER_VIEWER})


Parameters = Mapping[str, str]


def no_parameters(tenant: Tenant) -> Parameters:
    """Makes nothing, for paths without parameters."""
    return {}


@dataclass(frozen=True)
class Route:
    """One method of one path, such as `GET /api/v1/api-keys/<id>`."""

    method: str
    path: str
    # The permission that it requires; None if it needs no credential or only a session.
    permission: Permission | None
    body: Mapping[str, object] | None = None
    query: Mapping[str, object] = field(default_factory=dict)
    # Makes the resources that the path names, in the tenant's organization and its default project.
    parameters: Callable[[Tenant], Parameters] = no_parameters
    # Whether only a person's session may call it, and no API key.
    session: bool = False
    # Whether only a session of staff may call it.
    staff: bool = False
    # Whether a role in the project of the named resources suffices. None: yes below `/clusters`.
    in_project: bool | None = None
    # Whether it answers 404 in place of 403 to actors who may not read the organization.
    hidden: bool = False
    # The status of a change by an actor with a role in another project only; 422 where the body
    # names a resource that this actor does not see.
    elsewhere: int = 403
    # The statuses of a request that an actor may make.
    succeeds: frozenset[int] = frozenset({200, 201, 202, 204})

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    @property
    def names_something(self) -> bool:
        """Whether the path names a resource of one organization."""
        return "<" in self.path

    @property
    def asks_the_project(self) -> bool:
        """Whether a role in a project suffices."""
        if self.in_project is not None:
            return self.in_project
        return self.path.removeprefix("/api/v1/").startswith("clusters")

    def address(self, parameters: Parameters) -> str:
        """Returns the path with its parameters filled in."""
        filled = self.path
        for name, value in parameters.items():
            filled = filled.replace(f"<{name}>", value)
        return filled

    def filled_body(self, parameters: Parameters) -> Mapping[str, object] | None:
        """Returns the body; a member that is `<name>` has the parameter of that name."""
        if self.body is None:
            return None
        ids = {f"<{name}>": value for name, value in parameters.items()}
        return {
            name: ids.get(value, value) if isinstance(value, str) else value
            for name, value in self.body.items()
        }


def absent_parameters(parameters: Parameters) -> Parameters:
    """Returns the same parameters with ids that no resource ever had."""
    return {
        name: new_id(value.split("_")[0]) if "_" in value else value
        for name, value in parameters.items()
    }
