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
from console.base.common.api.pagination import KeysetPagination
from console.base.common.api.views import ApiView
from console.base.common.errors import AppError
from provisioning.administration.acl_templates import TEMPLATES, TemplateValues
from provisioning.administration.api import acl_serializers as shapes
from provisioning.administration.api.topic_serializers import EffectSerializer
from provisioning.administration.services import acls
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import WHOLE_LIST_MAX, ClusterSchema, ClusterViewSet
from provisioning.errors import at_item

SEVERAL = {200: shapes.AclListSerializer}
CREATED = {201: shapes.AclsCreatedSerializer}


class AclViewSet(ClusterViewSet):
    """Entries of the access control list. The id of an entry is made of all of its fields."""

    serializer_class = shapes.AclSerializer
    input_serializers = {
        "create": shapes.AclCreateSerializer,
        "create_batch": shapes.AclBatchSerializer,
        "apply_template": shapes.ApplyTemplateSerializer,
        "destroy_matching": shapes.AclQuerySerializer,
    }
    optional_bodies = ("destroy_matching",)
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
    limit_max = WHOLE_LIST_MAX

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Entries that have the given fields; all of them without any."""
        entries = acls.list_acls(cluster=self.cluster, matching=self._matching())
        return self.page(entries, key=lambda entry: json.dumps(astuple(entry)))

    def retrieve(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """One entry."""
        return self.answer(acls.get_acl(cluster=self.cluster, acl=id))

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Adds an entry, or several as `items`: all or none. Those that are there stay.

        Running brokers have them when this returns, or the condition says that it is not known.
        """
        data = self.validated_input()
        several = "items" in data
        return self._add(
            [Acl(**item) for item in (data["items"] if several else [data])], several=several
        )

    def create_batch(self, request: Request, **kwargs: Any) -> Response:
        """Adds entries, all or none. Those that are there stay."""
        entries = [Acl(**item) for item in self.validated_input()["items"]]
        return self._add(entries, several=True)

    def apply_template(self, request: Request, **kwargs: Any) -> Response:
        """Adds the entries that a template (`/acl-templates`) gives; those that are there stay.

        With `validate_only` it gives them and adds none.
        """
        data = self.validated_input()
        template = data.pop("template")
        entries = acls.template_acls(template=template, values=TemplateValues(**data))
        return self._add(entries, several=True)

    def destroy(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Removes one entry."""
        acls.delete_acl(actor=self.actor, cluster=self.cluster, acl=id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def destroy_matching(self, request: Request, **kwargs: Any) -> Response:
        """Removes the entries that have the given fields (query or body), and gives them."""
        removed = acls.delete_acls(
            actor=self.actor, cluster=self.cluster, matching=self._matching()
        )
        return Response({"items": shapes.AclSerializer(removed, many=True).data})

    def _add(self, entries: Sequence[Acl], *, several: bool) -> Response:
        try:
            effect = acls.create_acls(
                actor=self.actor,
                cluster=self.cluster,
                acls=entries,
                validate_only=self.validate_only,
            )
        except AppError as error:
            raise _with_rest_pointers(error, several=several) from error
        shown: list[Any] = list(shapes.AclSerializer(entries, many=True).data)
        if self.validate_only:
            return Response({"valid": True, "items": shown})
        effect_data = EffectSerializer(effect).data
        created = [{**entry, "status": effect_data} for entry in shown]
        body: Any = {"items": created, "next_cursor": None} if several else created[0]
        return Response(body, status=status.HTTP_201_CREATED)

    def _matching(self) -> dict[str, str]:
        """The fields that entries must have, from the query and, for a deletion, the body."""
        matching = self.query()
        if self.action == "destroy_matching":
            matching = {**matching, **self.validated_input()}
        return {name: str(value) for name, value in matching.items()}


class AclTemplateView(ApiView):
    """Templates of entries, for kinds of applications."""

    schema = ClusterSchema()
    serializer_class = shapes.AclTemplateSerializer
    pagination_class = KeysetPagination
    lists = ("GET",)
    examples = examples.ACL_TEMPLATES

    def get(self, request: Request) -> HttpResponseBase:
        """All of them, by name."""
        return self.page(list(TEMPLATES.values()), key=lambda template: template.name)


def _with_rest_pointers(error: AppError, *, several: bool) -> AppError:
    """Rewrites the pointer of an error: the metadata store points at `/acls/<place>/<field>`.

    The body of a request has `/<field>`, or `/items/<place>/<field>` where it has several entries.
    """
    for field_error in error.errors:
        place, _, field = field_error.pointer.removeprefix("/acls/").partition("/")
        if field_error.pointer.startswith("/acls/") and place.isdigit():
            error.errors = (type(field_error)(f"/{field}", field_error.code, field_error.detail),)
            return at_item(error, int(place)) if several else error
    return error
