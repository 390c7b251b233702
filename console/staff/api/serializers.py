"""JSON shapes of what staff sees."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.incidents.api.serializers import IncidentSerializer
from console.incidents.choices import IncidentState
from console.limits.api.serializers import LimitRequestSerializer
from console.limits.choices import LimitRequestState
from console.limits.models import LimitRequest
from console.limits.models.request import TEXT_CHARS_MAX, VALUE_MAX
from console.staff.cells import CellStanding
from provisioning.api.cluster_serializers import OperationSerializer
from provisioning.choices import OperationState
from provisioning.models import Cluster
from provisioning.services.observation import observe_cluster

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


class StaffCellSerializer(serializers.Serializer[CellStanding]):
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
