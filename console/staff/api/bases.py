"""Lists over every organisation, for staff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts.api.authentication import PersonAuthentication
from console.base.accounts.models import User
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.api.schema import Schema
from console.base.common.api.views import ApiViewSet, SerializerType
from console.base.common.tenancy import system_scope
from console.staff.api.permissions import StaffOnly


class StaffSchema(Schema):
    """Adds the parameters that `query_serializers` describe."""

    def get_override_parameters(self) -> list[Any]:
        """Query and header parameters."""
        queries = getattr(self.view, "query_serializers", {})
        described = [queries[self._key()]] if self._key() in queries else []
        return [*super().get_override_parameters(), *described]


class StaffViewSet(ApiViewSet):
    """What only staff may see. Rows of every organisation, by `rows`."""

    schema = StaffSchema()
    authentication_classes = (PersonAuthentication,)
    permission_classes = (StaffOnly,)
    # Action → serializer of the query parameters.
    query_serializers: ClassVar[Mapping[str, SerializerType]] = {}

    def staff_actor(self, organization_id: str) -> Actor:
        """The signed-in person, acting in an organisation for the service; grants nothing."""
        user = self.request.user
        assert isinstance(user, User)  # noqa: S101 (`StaffOnly` let in nobody else)
        return Actor(
            kind=ActorKind.STAFF,
            id=user.pk,
            organization_id=organization_id,
            role=Role.VIEWER,
            address=self.address,
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page of rows, newest first."""
        del request, args, kwargs
        kind = self.query_serializers.get("list")
        wanted = self.validated_query(kind) if kind else {}
        with system_scope():
            rows = self.paginate_queryset(self.rows(wanted))
            data = self.output_serializer()(rows, many=True).data
        return self.get_paginated_response(data)

    def rows(self, wanted: Mapping[str, Any]) -> Any:
        """The rows that match. In the system's tenancy scope."""
        raise TypeError(type(self))


def named(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the query's parameters that were given."""
    return {name: value for name, value in wanted.items() if value not in {None, ""}}
