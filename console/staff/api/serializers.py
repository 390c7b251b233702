"""JSON shapes of what staff sees."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.base.limits.api.serializers import LimitRequestSerializer
from console.base.limits.choices import LimitRequestState
from console.base.limits.models import LimitRequest
from console.base.limits.models.request import TEXT_CHARS_MAX, VALUE_MAX
from console.incidents.api.serializers import IncidentSerializer
from console.incidents.choices import IncidentState
from console.staff.cells import CellStatus
from provisioning.cell.notes import CellHealth
from provisioning.choices import OperationState
from provisioning.clusters.api.cluster_serializers import OperationSerializer
from provisioning.clusters.services.observation import observe_cluster
from provisioning.models import BreakGlass, Cluster
from provisioning.models.break_glass import (
    LASTS_S_DEFAULT,
    LASTS_S_MAX,
    LASTS_S_MIN,
    REASON_CHARS_MAX,
    REASON_CHARS_MIN,
)

ORGANIZATION_ID = r"^org_[a-z2-7]{20}$"


class OrganizationQuerySerializer(serializers.Serializer[Any]):
    """Whose rows are asked for."""

    organization_id = serializers.RegexField(ORGANIZATION_ID, required=False)


class OperationQuerySerializer(OrganizationQuerySerializer):
    """Which operations are asked for."""

    state = serializers.ChoiceField(choices=OperationState.choices, required=False)


class IncidentQuerySerializer(OrganizationQuerySerializer):
    """Which incidents are asked for."""

    state = serializers.ChoiceField(choices=IncidentState.choices, required=False)


class LimitRequestQuerySerializer(OrganizationQuerySerializer):
    """Which requests are asked for."""

    state = serializers.ChoiceField(choices=LimitRequestState.choices, required=False)


class MeterSerializer(serializers.Serializer[Any]):
    """How far usage is metered."""

    ran_at = serializers.DateTimeField(allow_null=True, help_text="When the last pass ended.")
    lag_s = serializers.SerializerMethodField(help_text="Age of the newest usage file.")
    damaged_files = serializers.SerializerMethodField()
    incomplete_hours = serializers.SerializerMethodField(
        help_text="Hours of clusters that should be complete by now; at most 50 are counted."
    )
    missing_days = serializers.ListField(child=serializers.DateField())

    def get_lag_s(self, meter: Any) -> int | None:
        """In seconds."""
        return None if meter.lag is None else int(meter.lag.total_seconds())

    def get_damaged_files(self, meter: Any) -> int:
        """How many."""
        return len(meter.damaged)

    def get_incomplete_hours(self, meter: Any) -> int:
        """How many."""
        return len(meter.incomplete)


class HealthSerializer(serializers.Serializer[Any]):
    """How a cell's brokers are, as its keeper tells."""

    told_at = serializers.SerializerMethodField()
    wanted = serializers.IntegerField(help_text="Brokers that should run.")
    unhealthy = serializers.IntegerField(help_text="Those of them that do not serve.")
    deletions_held = serializers.BooleanField(source="held")
    reason = serializers.CharField(help_text="Why they are held; empty: they are not.")
    platform = serializers.CharField(
        help_text="Why what runs brokers cannot be asked; empty: it can."
    )
    machines = serializers.ListField(
        child=serializers.CharField(), help_text="Those that are lost."
    )
    orphans = serializers.ListField(
        child=serializers.CharField(),
        help_text="Clusters that brokers or settings are there of, and that nobody wants.",
    )

    @extend_schema_field(serializers.DateTimeField())
    def get_told_at(self, health: CellHealth) -> datetime:
        """When."""
        return datetime.fromtimestamp(health.told_at_ms / 1000, UTC)


class StaffCellSerializer(serializers.Serializer[CellStatus]):
    """A cell."""

    id = serializers.CharField()
    region = serializers.CharField(source="cell.region")
    reachable = serializers.BooleanField(help_text="Whether its metadata store answers.")
    phases = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many clusters are in each."
    )
    brokers = serializers.IntegerField()
    connections = serializers.IntegerField()
    restarts = serializers.IntegerField(help_text="Of brokers, since their clusters woke up.")
    meter = MeterSerializer()
    health = HealthSerializer(allow_null=True, help_text="Null: the keeper never told.")


class StaffOrganizationSerializer(serializers.Serializer[Any]):
    """Whose it is."""

    id = serializers.CharField()
    name = serializers.CharField()


class StaffClusterSerializer(serializers.ModelSerializer[Cluster]):
    """A cluster as it runs. Nothing of what is in it."""

    organization = StaffOrganizationSerializer()
    cell = serializers.CharField(source="cell_id")
    phase = serializers.SerializerMethodField()
    restarts = serializers.SerializerMethodField()
    connections = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(help_text="What its keeper says.")

    class Meta:
        model = Cluster
        fields = (
            *("id", "name", "organization", "cell", "phase", "message", "connections"),
            *("restarts", "generation", "reconciled_generation", "checked_at", "created_at"),
        )
        read_only_fields = fields

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """With one read of the cell."""
        self._seen = observe_cluster(instance)
        return super().to_representation(instance)

    def get_phase(self, cluster: Cluster) -> str:
        """As people are shown it."""
        del cluster
        return self._seen.phase.value

    def get_restarts(self, cluster: Cluster) -> int | None:
        """Since it woke up."""
        del cluster
        return self._seen.restarts

    def get_connections(self, cluster: Cluster) -> int | None:
        """Of clients."""
        del cluster
        return self._seen.connections

    def get_message(self, cluster: Cluster) -> str:
        """Empty where there is nothing to say."""
        del cluster
        return "" if self._seen.cell is None else self._seen.cell.message


class BreakGlassInputSerializer(serializers.Serializer[Any]):
    """Why one deletion shall pass, and for how long it may."""

    reason = serializers.CharField(
        min_length=REASON_CHARS_MIN,
        max_length=REASON_CHARS_MAX,
        help_text="The organisation's people read it.",
    )
    expires_in_s = serializers.IntegerField(
        default=LASTS_S_DEFAULT, min_value=LASTS_S_MIN, max_value=LASTS_S_MAX
    )


class BreakGlassSerializer(serializers.ModelSerializer[BreakGlass]):
    """A permit to delete a cluster although deletions are held."""

    audit_id = serializers.CharField(help_text="The entry of the organisation's audit log.")
    used_at = serializers.DateTimeField(
        allow_null=True, help_text="When it let a deletion pass; null: not yet."
    )

    class Meta:
        model = BreakGlass
        fields = (
            *("id", "organization_id", "cluster_id", "reason", "made_by", "audit_id"),
            *("created_at", "expires_at", "used_at"),
        )
        read_only_fields = fields


class StaffOperationSerializer(OperationSerializer):
    """An operation, and whose it is."""

    organization = StaffOrganizationSerializer()


class StaffIncidentSerializer(IncidentSerializer):
    """An incident, a suspected one too, and whose it is."""

    organization_id = serializers.CharField(
        allow_null=True, help_text="Null: of the service as a whole."
    )
    state = serializers.ChoiceField(choices=IncidentState.choices)

    class Meta(IncidentSerializer.Meta):
        fields = (*IncidentSerializer.Meta.fields, "organization_id")
        read_only_fields = fields


class StaffLimitRequestSerializer(LimitRequestSerializer):
    """A request for more, and whose it is."""

    organization_id = serializers.CharField()

    class Meta(LimitRequestSerializer.Meta):
        model = LimitRequest
        fields = (*LimitRequestSerializer.Meta.fields, "organization_id")
        read_only_fields = fields


class GrantSerializer(serializers.Serializer[Any]):
    """What is granted."""

    value = serializers.IntegerField(
        min_value=1, max_value=VALUE_MAX, required=False, help_text="Without it: what was wanted."
    )
    answer = serializers.CharField(
        max_length=TEXT_CHARS_MAX, required=False, allow_blank=True, default=""
    )


class RefuseSerializer(serializers.Serializer[Any]):
    """Why it is refused."""

    answer = serializers.CharField(max_length=TEXT_CHARS_MAX)
