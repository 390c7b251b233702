"""What a route takes, and what each actor may expect of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from console.base.common.actor import Permission
from console.base.common.ids import new_id
from tests.console.factories import Tenant


class WhoCalls(StrEnum):
    """The actors of the walk."""

    ANONYMOUS = "anonymous"
    OTHER_TENANT = "other tenant"
    VIEWER = "viewer"
    ADMIN = "admin"
    REVOKED = "revoked key"
    EXPIRED = "expired key"
    # Belong to the organisation, and have a role in the project of what is walked.
    PROJECT_DEVELOPER = "developer of the project"
    PROJECT_VIEWER = "viewer of the project"
    # A session of a member, where the two above are keys of service accounts.
    PROJECT_MEMBER = "member who develops the project"
    # Belong to the organisation, and have a role in another project of it.
    OTHER_DEVELOPER = "developer of another project"
    OTHER_VIEWER = "viewer of another project"


OF_ANOTHER = frozenset({WhoCalls.OTHER_DEVELOPER, WhoCalls.OTHER_VIEWER})


Parameters = Mapping[str, str]


def no_parameters(tenant: Tenant) -> Parameters:
    """For addresses without parameters."""
    del tenant
    return {}


@dataclass(frozen=True)
class Route:
    """One method of one address, such as `GET /api/v1/api-keys/<id>`."""

    method: str
    path: str
    # What the role must grant; None if nobody needs to be signed in.
    permission: Permission | None
    body: Mapping[str, object] | None = None
    query: Mapping[str, object] = field(default_factory=dict)
    # Makes what the address names, in the tenant's organisation.
    parameters: Callable[[Tenant], Parameters] = no_parameters
    # Only a person's session opens it, and no API key.
    session: bool = False
    # Of these, only that of somebody who runs the service.
    staff: bool = False
    # A role in the project of what the address names suffices; by default of what lies in clusters.
    # What is walked lies in the default project.
    in_project: bool | None = None
    # Looks absent to who may not read the organisation, in place of forbidden.
    hidden: bool = False
    # What a change answers to a role in a project that it is not about; 422 where the body names
    # something that such a role does not see.
    elsewhere: int = 403
    # Statuses of a request that nothing speaks against.
    succeeds: frozenset[int] = frozenset({200, 201, 202, 204})

    @property
    def name(self) -> str:
        """Method and address."""
        return f"{self.method} {self.path}"

    @property
    def names_something(self) -> bool:
        """Tells whether the address names a thing of one organisation."""
        return "<" in self.path

    @property
    def asks_the_project(self) -> bool:
        """Tells whether a role in a project suffices."""
        if self.in_project is not None:
            return self.in_project
        return self.path.removeprefix("/api/v1/").startswith("clusters")

    def address(self, parameters: Parameters) -> str:
        """The address with its parameters filled in."""
        filled = self.path
        for name, value in parameters.items():
            filled = filled.replace(f"<{name}>", value)
        return filled


def absent(parameters: Parameters) -> Parameters:
    """The same parameters, with ids of things that there never were."""
    return {
        name: new_id(value.split("_")[0]) if "_" in value else value
        for name, value in parameters.items()
    }
