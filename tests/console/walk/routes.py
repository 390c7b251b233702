"""What a route takes, and what each actor may expect of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from console.common.actor import Permission
from console.common.ids import new_id
from tests.console.factories import Tenant


class WhoCalls(StrEnum):
    """The actors of the walk."""

    ANONYMOUS = "anonymous"
    OTHER_TENANT = "other tenant"
    VIEWER = "viewer"
    ADMIN = "admin"
    REVOKED = "revoked key"
    EXPIRED = "expired key"


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
