"""Endpoints of quotas of a cluster's clients."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from brokers.metadata_records import QuotaEntity
from console.base.common.api.kafka_names import KafkaNameField
from provisioning.administration.services import quotas
from provisioning.administration.services.quotas import KAFKA_NAMES, ShownQuota
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import WHOLE_LIST_MAX, ClusterViewSet

DEFAULT = "Empty: all that have none of their own."


class EntitySerializer(serializers.Serializer[Any]):
    """To whom quotas apply: a user, a client id, both, or an address."""

    user = KafkaNameField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=255,
        help_text="A user name at Kafka; of who produces and reads by REST `ApiKey:<key's id>` or "
        f"`Member:<user's id>`. {DEFAULT}",
    )
    client_id = KafkaNameField(
        required=False, allow_null=True, allow_blank=True, max_length=255, help_text=DEFAULT
    )
    ip = KafkaNameField(
        required=False, allow_null=True, allow_blank=True, max_length=64, help_text=DEFAULT
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a body that names nobody, or an address beside a user or client id."""
        names = [name for name in ("user", "client_id", "ip") if attrs.get(name) is not None]
        if not names:
            message = "Name a user, a client id or an address."
            raise serializers.ValidationError({"user": message}, code="required")
        if "ip" in names and len(names) > 1:
            message = "An address stands alone."
            raise serializers.ValidationError({"ip": message})
        return attrs


def entity_of(attrs: dict[str, Any]) -> QuotaEntity:
    """The entity that validated input names."""
    return QuotaEntity(**{name: attrs.get(name) for name in ("user", "client_id", "ip")})


class QuotaValuesSerializer(EntitySerializer):
    """Quotas of an entity: what is left out, or null, is not limited."""

    produce_bytes_per_second = serializers.FloatField(
        required=False, allow_null=True, min_value=1, max_value=1e15
    )
    fetch_bytes_per_second = serializers.FloatField(
        required=False, allow_null=True, min_value=1, max_value=1e15
    )
    request_percentage = serializers.FloatField(
        required=False,
        allow_null=True,
        min_value=0.01,
        max_value=1e6,
        help_text="Of the time of one thread.",
    )
    connections = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=10**6, help_text="Of a user alone."
    )
    connections_per_second = serializers.FloatField(
        required=False, allow_null=True, min_value=0.01, max_value=1e6, help_text="Of an address."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a body without values, and values that this kind of entity cannot have."""
        attrs = super().validate(attrs)
        values = values_of(attrs)
        if not values:
            message = "Give at least one value; DELETE removes all."
            raise serializers.ValidationError(
                {"produce_bytes_per_second": message}, code="required"
            )
        address = attrs.get("ip") is not None
        for name in values:
            of_address = name == "connections_per_second"
            if of_address != address:
                message = "An address has connections_per_second, and nobody else has."
                raise serializers.ValidationError({name: message})
        if "connections" in values and (
            attrs.get("user") is None or attrs.get("client_id") is not None
        ):
            raise serializers.ValidationError({"connections": "Only a user alone has it."})
        return attrs


def values_of(attrs: dict[str, Any]) -> dict[str, float]:
    """The quotas of validated input, by their REST names; null counts as left out."""
    return {name: attrs[name] for name in KAFKA_NAMES if attrs.get(name) is not None}


class ClientQuotaSerializer(serializers.Serializer[Any]):
    """Quotas of an entity. Null is no part of it, or no limit; empty is the default entity."""

    id = serializers.CharField()
    user = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_null=True)
    ip = serializers.CharField(allow_null=True)
    produce_bytes_per_second = serializers.FloatField(allow_null=True)
    fetch_bytes_per_second = serializers.FloatField(allow_null=True)
    request_percentage = serializers.FloatField(allow_null=True)
    connections = serializers.IntegerField(allow_null=True)
    connections_per_second = serializers.FloatField(allow_null=True)

    def to_representation(self, instance: ShownQuota) -> dict[str, Any]:
        """The quota as JSON, with null for each value that is not set."""
        entity, connections = instance.entity, instance.value("connections")
        return {
            "id": instance.id,
            "user": entity.user,
            "client_id": entity.client_id,
            "ip": entity.ip,
            **{name: instance.value(name) for name in KAFKA_NAMES},
            "connections": None if connections is None else int(connections),
        }


class QuotaViewSet(ClusterViewSet):
    """Quotas. Brokers answer at once and then wait with the next, as by Kafka's own.

    Those of the default user and the default client id hold for records that go by REST as well,
    for each API key and member by itself: a request beyond one is refused (429, `quota_used_up`).
    """

    serializer_class = ClientQuotaSerializer
    input_serializers = {"update": QuotaValuesSerializer}
    query_serializers = {"destroy_entity": EntitySerializer}
    operation_ids = {"destroy_entity": "clusters_quotas_destroy_entity"}
    validates = ("update",)
    examples = examples.QUOTAS
    limit_max = WHOLE_LIST_MAX

    def list(self, request: Request, **kwargs: Any) -> Response:
        """All of them: `limit` may be up to 2000, they cost one read."""
        shown = quotas.list_quotas(cluster=self.cluster)
        return self.page(shown, key=lambda quota: quota.id)

    def retrieve(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Those of one entity."""
        return self.answer(quotas.get_quota(cluster=self.cluster, quota=id))

    def update(self, request: Request, **kwargs: Any) -> Response:
        """Gives an entity these quotas and no others, whether it had some or not."""
        data = self.validated_input()
        shown = quotas.set_quota(
            actor=self.actor,
            cluster=self.cluster,
            entity=entity_of(data),
            values=values_of(data),
            validate_only=self.validate_only,
        )
        return self.answer(shown)

    def destroy(self, request: Request, id: str, **kwargs: Any) -> Response:  # noqa: A002
        """Removes those of one entity."""
        shown = quotas.get_quota(cluster=self.cluster, quota=id)
        return self._remove(shown.entity)

    def destroy_entity(self, request: Request, **kwargs: Any) -> Response:
        """Removes those of the entity that the query names."""
        return self._remove(entity_of(self.query()))

    def _remove(self, entity: QuotaEntity) -> Response:
        quotas.remove_quota(actor=self.actor, cluster=self.cluster, entity=entity)
        return Response(status=status.HTTP_204_NO_CONTENT)
