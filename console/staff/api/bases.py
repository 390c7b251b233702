"""The base of endpoints for staff: lists of rows of every organization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts.api.authentication import PersonAuthentication
from console.base.accounts.models import User
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.api.views import ApiViewSet
from console.base.common.tenancy import system_scope
from console.staff.api.permissions import StaffOnly


class StaffViewSet(ApiViewSet):
    """The base of endpoints that only staff may use. `rows` gives rows of every organization."""

    authentication_classes = (PersonAuthentication,)
    permission_classes = (StaffOnly,)

    def staff_actor(self, organization_id: str) -> Actor:
        """Returns the signed-in person as an actor in an organization, for its audit log.

        Its role is the lowest one: what staff may do is decided by `StaffOnly` and not by a role.
        """
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
        query = self.query() if "list" in self.query_serializers else {}
        with system_scope():
            rows = self.paginate_queryset(self.rows(query))
            data = self.output_serializer()(rows, many=True).data
        return self.get_paginated_response(data)

    def rows(self, query: Mapping[str, Any]) -> Any:
        """Returns the rows that match the query. Called in the system's tenancy scope."""
        raise NotImplementedError


def filters_of(query: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of the query that have a value, as filters of a queryset."""
    return {name: value for name, value in query.items() if value not in {None, ""}}
