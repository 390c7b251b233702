"""JSON shapes of limits."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.limits.choices import LimitRequestState, LimitScope
from console.base.limits.models import LimitRequest
from console.base.limits.models.request import LIMIT_CHARS_MAX, TEXT_CHARS_MAX, VALUE_MAX

CLUSTER_ID = r"^cl_[a-z2-7]{20}$"


class LimitsQuerySerializer(serializers.Serializer[Any]):
    """The cluster whose limits are shown."""

    cluster_id = serializers.RegexField(
        CLUSTER_ID, required=False, help_text="Shows this cluster's own values and use."
    )


class LimitSerializer(serializers.Serializer[Any]):
    """A limit, with what happens when it is reached."""

    name = serializers.CharField(help_text="Also the `quota.name` of the problem.")
    scope = serializers.ChoiceField(source="definition.scope", choices=LimitScope.choices)
    limit = serializers.IntegerField()
    used = serializers.IntegerField(allow_null=True, help_text="Null if it is not known.")
    unit = serializers.CharField(source="definition.unit")
    effect = serializers.CharField(source="definition.effect")
    raisable = serializers.BooleanField(
        source="definition.raisable", help_text="Whether a limit request may ask for more."
    )


class LimitRequestSerializer(serializers.ModelSerializer[LimitRequest]):
    """A request to raise a limit."""

    cluster_id = serializers.SerializerMethodField(
        help_text="Null for the organization, or all of its clusters."
    )
    state = serializers.ChoiceField(choices=LimitRequestState.choices)

    class Meta:
        model = LimitRequest
        fields: tuple[str, ...] = (
            *("id", "limit", "cluster_id", "wanted", "reason", "state", "answer", "granted"),
            *("created_at", "answered_at"),
        )
        read_only_fields = fields

    def get_cluster_id(self, request: LimitRequest) -> str | None:
        """Returns the id of the request's cluster, or null."""
        return request.cluster_id or None


class LimitRequestCreateSerializer(serializers.Serializer[Any]):
    """The limit to raise, the requested value, and the reason."""

    limit = serializers.CharField(max_length=LIMIT_CHARS_MAX, help_text="A limit's name.")
    cluster_id = serializers.RegexField(
        CLUSTER_ID,
        required=False,
        help_text="For a limit of clusters: which one. Without it, all of the organization's.",
    )
    wanted = serializers.IntegerField(min_value=1, max_value=VALUE_MAX, source="requested")
    reason = serializers.CharField(max_length=TEXT_CHARS_MAX)
