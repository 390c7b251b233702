"""The endpoint of the first steps with a cluster."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from provisioning.administration.services.first_steps import first_steps
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterViewSet


class FirstStepsSerializer(serializers.Serializer[Any]):
    """How far somebody has come with a cluster. null: not known, as of a sleeping cluster."""

    credential = serializers.BooleanField(help_text="It has a credential.")
    produced = serializers.BooleanField(
        allow_null=True, help_text="It has, or had, records other than the service's own samples."
    )
    consumed = serializers.BooleanField(
        allow_null=True, help_text="A consumer group has committed an offset behind a record."
    )


class FirstStepsViewSet(ClusterViewSet):
    """The first steps with a cluster."""

    serializer_class = FirstStepsSerializer
    examples = examples.FIRST_STEPS

    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        """What was done already: a credential made, a record produced, a record consumed."""
        return self.answer(first_steps(cluster=self.cluster))
