"""Endpoints of a cluster's access control list."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from brokers.metadata_records import Acl
from console.common.errors import AppError
from provisioning.api import examples
from provisioning.api import topic_serializers as shapes
from provisioning.api.bases import ClusterViewSet
from provisioning.errors import at_item
from provisioning.services import acls

LIST_LIMIT_MAX = 2_000
SEVERAL = {200: shapes.AclListSerializer}


class AclViewSet(ClusterViewSet):
    """Entries of the access control list. They have no ids: an entry is all of its fields."""

    serializer_class = shapes.AclSerializer
    input_serializers = {"create": shapes.AclCreateSerializer}
    output_serializers = {
        "create": shapes.AclCreatedSerializer,
        "destroy": shapes.AclListSerializer,
    }
    query_serializers = {"list": shapes.AclQuerySerializer, "destroy": shapes.AclQuerySerializer}
    responses = {"destroy": SEVERAL}
    examples = examples.ACLS

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Entries that have the given fields; all of them without any."""
        del request, kwargs
        found = acls.list_acls(cluster=self.cluster, wanted=self._wanted())
        return self.page(
            found, key=lambda entry: json.dumps(astuple(entry)), limit_max=LIST_LIMIT_MAX
        )

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Adds an entry, or several as `items`: all or none. Those that are there stay.

        Running brokers have them when this returns, or the condition says that it is not known.
        """
        del request, kwargs
        data = self.validated_input()
        several = "items" in data
        wanted = [Acl(**each) for each in (data["items"] if several else [data])]
        try:
            effect = acls.create_acls(actor=self.actor, cluster=self.cluster, acls=wanted)
        except AppError as error:
            raise _placed(error, several=several) from error
        made = [{**asdict(entry), "status": effect} for entry in wanted]
        shown = shapes.AclCreatedSerializer(made, many=True).data
        body: Any = {"items": shown, "next_cursor": None} if several else shown[0]
        return Response(body, status=status.HTTP_201_CREATED)

    def destroy(self, request: Request, **kwargs: Any) -> Response:
        """Removes the entries that have the given fields (query or body), and gives them."""
        del request, kwargs
        going = acls.delete_acls(actor=self.actor, cluster=self.cluster, wanted=self._wanted())
        return Response({"items": shapes.AclSerializer(going, many=True).data})

    def _wanted(self) -> dict[str, str]:
        wanted = self.query()
        body = self.request.data
        if self.action == "destroy" and isinstance(body, dict) and body:
            fields = shapes.AclQuerySerializer(data=body)
            fields.is_valid(raise_exception=True)
            wanted = {**wanted, **fields.validated_data}
        # A multi-valued wish is none of this filter's.
        return {name: str(value) for name, value in wanted.items()}


def _placed(error: AppError, *, several: bool) -> AppError:
    """The metadata store names entries `acls/<place>`; the body names them otherwise."""
    for each in error.errors:
        prefix = each.pointer.removeprefix("/acls/").partition("/")
        if each.pointer.startswith("/acls/") and prefix[0].isdigit():
            error.errors = (type(each)(f"/{prefix[2]}", each.code, each.detail),)
            return at_item(error, int(prefix[0])) if several else error
    return error
