"""Endpoints of Kafka clients' credentials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from rest_framework import status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common import locks
from console.base.common.api.views import (
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)
from provisioning.administration.api import credential_serializers as shapes
from provisioning.administration.services import credential_rotation, credentials
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterViewSet
from provisioning.models import Credential

CREATED = {201: shapes.CredentialCreatedSerializer}


class CredentialViewSet(
    ClusterViewSet, ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction
):
    """Credentials of a cluster's Kafka clients.

    One that is deleted or expires loses its connections within 5 s.
    """

    queryset = Credential.objects.current()
    serializer_class = shapes.CredentialSerializer
    input_serializers = {
        "create": shapes.CredentialCreateSerializer,
        "partial_update": shapes.CredentialUpdateSerializer,
        "rotate": shapes.RotateSerializer,
    }
    output_serializers = {"create": shapes.CredentialCreatedSerializer}
    responses = {"rotate": CREATED}
    validates = ("rotate",)
    examples = examples.CREDENTIALS
    # Changes are made in the cell, so they hold the cluster's lock.
    locks_rows = False

    @cached_property
    def stored_mechanisms(self) -> Mapping[str, list[str]] | None:
        """Which mechanisms the cell has keys for, by user. A change reads it before it writes."""
        return credentials.stored_mechanisms(cluster=self.cluster)

    def get_queryset(self) -> Any:
        """The credentials of the cluster that the address names."""
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        return rows.filter(cluster=self.cluster).select_related("cluster", "replaces", "successor")

    def get_object(self) -> Credential:
        """The credential of the address; a change holds the cluster's lock from here on."""
        if self.request.method not in SAFE_METHODS:
            locks.lock("cluster", self.cluster.pk)
        row: Credential = super().get_object()
        return row

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Creates a credential; with `validate_only` it checks everything and changes nothing."""
        if self.validate_only:
            self.perform_create(self.validated_input())
            return Response({"valid": True})
        return super().create(request, *args, **kwargs)

    def perform_create(self, data: dict[str, Any]) -> object:
        """Creates a credential; the answer is the only one that has its password."""
        return credentials.create_credential(
            actor=self.actor, cluster=self.cluster, validate_only=self.validate_only, **data
        )

    def perform_update(self, instance: Credential, data: dict[str, Any]) -> object:
        """Changes name or expiry."""
        _ = self.stored_mechanisms
        return credentials.update_credential(actor=self.actor, credential=instance, changes=data)

    def perform_destroy(self, instance: Credential) -> Response | None:
        """Ends the credential.

        Where the cell did not confirm it, the answer is an error and the transaction is committed
        all the same, because the sweep goes on with the removal.
        """
        error = credentials.delete_credential(actor=self.actor, credential=instance)
        return None if error is None else self.refuse(error)

    def rotate(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Makes another credential with the same rights; this one ends after the overlap.

        The new one has this one's name, role and ACLs, and a user name and password of its own.
        """
        instance, data = self.get_object(), self.validated_input()
        if self.validate_only:
            self._rotate(instance, data, validate_only=True)
            return Response({"valid": True})
        created = self._rotate(instance, data, validate_only=False)
        place = self.request.path.rpartition("/")[0] + f"/{created.credential.pk}"
        return self.answer(
            created,
            status=status.HTTP_201_CREATED,
            serializer=shapes.CredentialCreatedSerializer,
            headers={"Location": place},
        )

    def _rotate(
        self, instance: Credential, data: dict[str, Any], *, validate_only: bool
    ) -> credentials.CreatedCredential:
        return credential_rotation.rotate_credential(
            actor=self.actor, credential=instance, validate_only=validate_only, **data
        )
