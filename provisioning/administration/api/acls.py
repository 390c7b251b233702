"""Endpoints of a cluster's access control list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from brokers.metadata_records import Acl
from console.base.common.api.views import ApiView
from console.base.common.errors import AppError
from provisioning.administration.acl_templates import TEMPLATES, TemplateValues
from provisioning.administration.api import acl_serializers as shapes
from provisioning.administration.api.topic_serializers import EffectSerializer
from provisioning.administration.services import acls
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterSchema, ClusterViewSet
from provisioning.errors import at_item

LIST_LIMIT_MAX = 2_000
SEVERAL = {200: shapes.AclListSerializer}
CREATED = {201: shapes.AclsCreatedSerializer}


class AclViewSet(ClusterViewSet):
    """Entries of the access control list. The id of an entry is made of all of its fields."""

    serializer_class = shapes.AclSerializer
    input_serializers = {
        "create": shapes.AclCreateSerializer,
        "create_batch": shapes.AclBatchSerializer,
        "apply_template": shapes.ApplyTemplateSerializer,
    }
    output_serializers = {
        "destroy_matching": shapes.AclListSerializer,
    }
    query_serializers = {
        "list": shapes.AclQuerySerializer,
        "destroy_matching": shapes.AclQuerySerializer,
    }
    responses = {
        "create": {201: shapes.ACL_OR_ACLS_CREATED},
        "destroy_matching": SEVERAL,
        "create_batch": CREATED,
        "apply_template": CREATED,
    }
    operation_ids = {"destroy_matching": "clusters_acls_destroy_matching"}
    validates = ("create", "create_batch", "apply_template")
    examples = examples.ACLS

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Entries that have the given fields; all of them without any."""
        del request, kwargs
        found = acls.list_acls(cluster=self.cluster, wanted=self._wanted())
        return self.page(
            found, key=lambda entry: json.dumps(astuple(entry)), limit_max=LIST_LIMIT_MAX
        )

    def retrieve(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """One entry."""
        del request, kwargs
        return self.answer(acls.get_acl(cluster=self.cluster, acl=id))

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Adds an entry, or several as `items`: all or none. Those that are there stay.

        Running brokers have them when this returns, or the condition says that it is not known.
        """
        del request, kwargs
        data = self.validated_input()
        several = "items" in data
        return self._add(
            [Acl(**item) for item in (data["items"] if several else [data])], several=several
        )

    def create_batch(self, request: Request, **kwargs: Any) -> Response:
        """Adds entries, all or none. Those that are there stay."""
        del request, kwargs
        wanted = [Acl(**item) for item in self.validated_input()["items"]]
        return self._add(wanted, several=True)

    def apply_template(self, request: Request, **kwargs: Any) -> Response:
        """Adds the entries that a template (`/acl-templates`) gives; those that are there stay.

        With `validate_only` it gives them and adds none.
        """
        del request, kwargs
        data = self.validated_input()
        template = data.pop("template")
        wanted = acls.template_acls(template=template, values=TemplateValues(**data))
        return self._add(wanted, several=True)

    def destroy(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Removes one entry."""
        del request, kwargs
        acls.delete_acl(actor=self.actor, cluster=self.cluster, acl=id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def destroy_matching(self, request: Request, **kwargs: Any) -> Response:
        """Removes the entries that have the given fields (query or body), and gives them."""
        del request, kwargs
        going = acls.delete_acls(actor=self.actor, cluster=self.cluster, wanted=self._wanted())
        return Response({"items": shapes.AclSerializer(going, many=True).data})

    def _add(self, wanted: Sequence[Acl], *, several: bool) -> Response:
        try:
            effect = acls.create_acls(
                actor=self.actor,
                cluster=self.cluster,
                acls=wanted,
                validate_only=self.validate_only,
            )
        except AppError as error:
            raise _placed(error, several=several) from error
        shown: list[Any] = list(shapes.AclSerializer(wanted, many=True).data)
        if self.validate_only:
            return Response({"valid": True, "items": shown})
        told = EffectSerializer(effect).data
        made = [{**each, "status": told} for each in shown]
        body: Any = {"items": made, "next_cursor": None} if several else made[0]
        return Response(body, status=status.HTTP_201_CREATED)

    def _wanted(self) -> dict[str, str]:
        wanted = self.query()
        body = self.request.data
        if self.action == "destroy_matching" and isinstance(body, dict) and body:
            fields = shapes.AclQuerySerializer(data=body)
            fields.is_valid(raise_exception=True)
            wanted = {**wanted, **fields.validated_data}
        # A multi-valued wish is none of this filter's.
        return {name: str(value) for name, value in wanted.items()}


class AclTemplateView(ApiView):
    """Templates of entries, for kinds of applications."""

    schema = ClusterSchema()
    serializer_class = shapes.AclTemplateListSerializer
    examples = examples.ACL_TEMPLATES

    def get(self, request: Request) -> HttpResponseBase:
        """All of them, in one page."""
        del request
        shown = shapes.AclTemplateSerializer(TEMPLATES.values(), many=True).data
        return Response({"items": shown, "next_cursor": None})


def _placed(error: AppError, *, several: bool) -> AppError:
    """The metadata store names entries `acls/<place>`; the body names them otherwise."""
    for each in error.errors:
        prefix = each.pointer.removeprefix("/acls/").partition("/")
        if each.pointer.startswith("/acls/") and prefix[0].isdigit():
            error.errors = (type(each)(f"/{prefix[2]}", each.code, each.detail),)
            return at_item(error, int(prefix[0])) if several else error
    return error
