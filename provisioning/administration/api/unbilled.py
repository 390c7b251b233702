"""The endpoint of traffic that nobody is billed for."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api.whole import WholeField
from provisioning.administration.services.unbilled import unbilled_traffic
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterViewSet


class TakerSerializer(serializers.Serializer[Any]):
    """What one principal takes."""

    principal = serializers.CharField(
        help_text="Empty: principals that brokers do not count apart, together."
    )
    bytes = WholeField()


class UnbilledTrafficSerializer(serializers.Serializer[Any]):
    """Bytes that nobody is billed for, since the cluster's brokers started."""

    bytes = WholeField(
        allow_null=True,
        help_text="Of Kafka requests and answers, all but batches that were stored and records "
        "that were handed out as a whole: metadata, heartbeats, commits, refused batches and "
        "duplicates, and what a topic compresses away. null: not known, as of a sleeping cluster. "
        "The limit `unbilled_bytes_per_second` bounds it.",
    )
    principals = TakerSerializer(many=True, help_text="At most ten, those that take most.")


class UnbilledTrafficViewSet(ClusterViewSet):
    """The traffic of a cluster that nobody is billed for."""

    serializer_class = UnbilledTrafficSerializer
    examples = examples.UNBILLED_TRAFFIC

    def retrieve(self, request: Request, **kwargs: Any) -> Response:
        """How much of a cluster's traffic is not billed, and who takes it. It has no price."""
        return self.answer(unbilled_traffic(cluster=self.cluster))
