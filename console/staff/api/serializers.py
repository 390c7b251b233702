"""JSON shapes of what staff sees."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.choices import MissingKind
from billing.models import InvoiceMonth, MissingInvoice
from billing.periods import parse_month
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
MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"


class OrganizationQuerySerializer(serializers.Serializer[Any]):
    """The query parameters of a list: whose rows."""

    organization_id = serializers.RegexField(ORGANIZATION_ID, required=False)


class OperationQuerySerializer(OrganizationQuerySerializer):
    """The query parameters of a list of operations."""

    state = serializers.ChoiceField(choices=OperationState.choices, required=False)


class StaffIncidentQuerySerializer(OrganizationQuerySerializer):
    """The query parameters of a list of incidents."""

    state = serializers.ChoiceField(choices=IncidentState.choices, required=False)


class LimitRequestQuerySerializer(OrganizationQuerySerializer):
    """The query parameters of a list of limit requests."""

    state = serializers.ChoiceField(choices=LimitRequestState.choices, required=False)


class MissingInvoiceQuerySerializer(OrganizationQuerySerializer):
    """The query parameters of a list of missing invoices."""

    month = serializers.RegexField(MONTH, required=False, help_text="As `YYYY-MM`.")
    kind = serializers.ChoiceField(choices=MissingKind.choices, required=False)

    def validate_month(self, text: str) -> date:
        """Returns the first day of the month."""
        try:
            return parse_month(text)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error


class JobProgressSerializer(serializers.Serializer[Any]):
    """The stage that a job is in. Tasks, rows and bytes are those of this stage."""

    stage = serializers.IntegerField(help_text="From 1.")
    stages = serializers.IntegerField()
    what = serializers.CharField()
    tasks_done = serializers.IntegerField()
    tasks = serializers.IntegerField(help_text="0: it has not said.")
    rows = serializers.IntegerField(help_text="Read so far.")
    bytes = serializers.IntegerField(help_text="Read so far.")


class RunningJobSerializer(serializers.Serializer[Any]):
    """A roll-up of a day, or its comparison with the log, that has no result yet."""

    id = serializers.CharField()
    job = serializers.ChoiceField(choices=["rollup", "reconcile"])
    day = serializers.DateField()
    began_at = serializers.DateTimeField()
    reported_at = serializers.DateTimeField(help_text="When it said last how far it is, or began.")
    progress = JobProgressSerializer(allow_null=True, help_text="Null: it has said nothing yet.")


class MeterSerializer(serializers.Serializer[Any]):
    """How far usage is metered."""

    ran_at = serializers.DateTimeField(allow_null=True, help_text="When the last pass ended.")
    lag_s = serializers.SerializerMethodField(help_text="Age of the newest usage file.")
    damaged_files = serializers.SerializerMethodField()
    incomplete_hours = serializers.SerializerMethodField(
        help_text="Hours of clusters that should be complete by now; at most 50 are counted."
    )
    missing_days = serializers.ListField(child=serializers.DateField())
    running = RunningJobSerializer(many=True, help_text="Jobs that run, the newest first.")

    def get_lag_s(self, meter: Any) -> int | None:
        """Returns the age of the newest usage file in seconds; None where there is none."""
        return None if meter.lag is None else int(meter.lag.total_seconds())

    def get_damaged_files(self, meter: Any) -> int:
        """Returns the number of damaged usage files."""
        return len(meter.damaged)

    def get_incomplete_hours(self, meter: Any) -> int:
        """Returns the number of hours of clusters whose usage is late."""
        return len(meter.incomplete)


class HealthSerializer(serializers.Serializer[Any]):
    """The last report of a cell's keeper on its brokers."""

    told_at = serializers.SerializerMethodField()
    wanted = serializers.IntegerField(help_text="Brokers that should run.")
    unhealthy = serializers.IntegerField(help_text="Brokers of these that do not serve.")
    deletions_held = serializers.BooleanField(source="held")
    reason = serializers.CharField(help_text="Why deletions are held; empty: they are not.")
    platform = serializers.CharField(
        help_text="Why the platform that runs brokers cannot be asked; empty: it can."
    )
    machines = serializers.ListField(child=serializers.CharField(), help_text="Lost machines.")
    orphans = serializers.ListField(
        child=serializers.CharField(),
        help_text="Clusters that brokers or settings exist for, and that no organization has.",
    )

    @extend_schema_field(serializers.DateTimeField())
    def get_told_at(self, health: CellHealth) -> datetime:
        """Returns when the keeper wrote the report."""
        return datetime.fromtimestamp(health.told_at_ms / 1000, UTC)


class StaffCellSerializer(serializers.Serializer[CellStatus]):
    """A cell."""

    id = serializers.CharField()
    region = serializers.CharField(source="cell.region")
    reachable = serializers.BooleanField(help_text="Whether its metadata store answers.")
    phases = serializers.DictField(
        child=serializers.IntegerField(), help_text="The number of clusters in each phase."
    )
    brokers = serializers.IntegerField()
    connections = serializers.IntegerField()
    restarts = serializers.IntegerField(
        help_text="Restarts of brokers since their clusters woke up."
    )
    meter = MeterSerializer()
    health = HealthSerializer(allow_null=True, help_text="Null: the keeper never reported.")


class StaffOrganizationSerializer(serializers.Serializer[Any]):
    """The organization of a row."""

    id = serializers.CharField()
    name = serializers.CharField()


class StaffClusterSerializer(serializers.ModelSerializer[Cluster]):
    """A cluster as it runs, without its contents."""

    organization = StaffOrganizationSerializer()
    cell = serializers.CharField(source="cell_id")
    phase = serializers.SerializerMethodField()
    restarts = serializers.SerializerMethodField()
    connections = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(help_text="The message of its keeper.")

    class Meta:
        model = Cluster
        fields = (
            *("id", "name", "organization", "cell", "phase", "message", "connections"),
            *("restarts", "generation", "reconciled_generation", "checked_at", "created_at"),
        )
        read_only_fields = fields

    def to_representation(self, instance: Cluster) -> dict[str, Any]:
        """Returns the JSON of a cluster, after one read of its status in the cell."""
        self._seen = observe_cluster(instance)
        return super().to_representation(instance)

    def get_phase(self, cluster: Cluster) -> str:
        """Returns the phase as the cluster's own organization sees it."""
        return self._seen.phase.value

    def get_restarts(self, cluster: Cluster) -> int | None:
        """Returns how often brokers restarted since the cluster woke up; None: not known."""
        return self._seen.restarts

    def get_connections(self, cluster: Cluster) -> int | None:
        """Returns the number of clients' connections; None: not known."""
        return self._seen.connections

    def get_message(self, cluster: Cluster) -> str:
        """Returns the keeper's message; empty where it has none."""
        return "" if self._seen.cell is None else self._seen.cell.message


class BreakGlassInputSerializer(serializers.Serializer[Any]):
    """The reason for a permit to delete a cluster, and how long the permit is valid."""

    reason = serializers.CharField(
        min_length=REASON_CHARS_MIN,
        max_length=REASON_CHARS_MAX,
        help_text="The organization's people read it.",
    )
    expires_in_s = serializers.IntegerField(
        default=LASTS_S_DEFAULT, min_value=LASTS_S_MIN, max_value=LASTS_S_MAX
    )


class BreakGlassSerializer(serializers.ModelSerializer[BreakGlass]):
    """A permit to delete a cluster although deletions are held."""

    audit_id = serializers.CharField(help_text="The entry of the organization's audit log.")
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
    """An operation with its organization."""

    organization = StaffOrganizationSerializer()


class StaffIncidentSerializer(IncidentSerializer):
    """An incident, also a suspected one, with its organization."""

    organization_id = serializers.CharField(
        allow_null=True, help_text="Null: of the service as a whole."
    )
    state = serializers.ChoiceField(choices=IncidentState.choices)

    class Meta(IncidentSerializer.Meta):
        fields = (*IncidentSerializer.Meta.fields, "organization_id")
        read_only_fields = fields


class StaffLimitRequestSerializer(LimitRequestSerializer):
    """A request for a higher limit, with its organization."""

    organization_id = serializers.CharField()

    class Meta(LimitRequestSerializer.Meta):
        model = LimitRequest
        fields = (*LimitRequestSerializer.Meta.fields, "organization_id")
        read_only_fields = fields


class InvoiceMonthSerializer(serializers.ModelSerializer[InvoiceMonth]):
    """A month that is issued by itself, and how far that is."""

    id = serializers.SerializerMethodField(help_text="The month as `YYYY-MM`.")
    reason = serializers.CharField(
        help_text="Why the last run ended for all organizations; empty: it did not."
    )
    finished_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When each organization had its invoice or was listed as missing it.",
    )

    class Meta:
        model = InvoiceMonth
        fields = ("id", "reason", "attempts", "begun_at", "finished_at", "next_try_at")
        read_only_fields = fields

    def get_id(self, row: InvoiceMonth) -> str:
        """Returns the month."""
        return f"{row.month:%Y-%m}"


class MissingInvoiceSerializer(serializers.ModelSerializer[MissingInvoice]):
    """An invoice of a closed month that could not be issued yet, and why."""

    organization = StaffOrganizationSerializer()
    month = serializers.SerializerMethodField(help_text="As `YYYY-MM`.")
    kind = serializers.ChoiceField(choices=MissingKind.choices)
    attempts = serializers.IntegerField(help_text="How often it was tried.")
    created_at = serializers.DateTimeField(help_text="When it failed first.")

    class Meta:
        model = MissingInvoice
        fields = (
            *("id", "organization", "month", "kind", "reason", "attempts"),
            *("created_at", "tried_at", "next_try_at"),
        )
        read_only_fields = fields

    def get_month(self, row: MissingInvoice) -> str:
        """Returns the month."""
        return f"{row.month:%Y-%m}"


class GrantSerializer(serializers.Serializer[Any]):
    """The answer that grants a request."""

    value = serializers.IntegerField(
        min_value=1,
        max_value=VALUE_MAX,
        required=False,
        help_text="Without it: the requested value.",
    )
    answer = serializers.CharField(
        max_length=TEXT_CHARS_MAX, required=False, allow_blank=True, default=""
    )


class RefuseSerializer(serializers.Serializer[Any]):
    """The answer that refuses a request."""

    answer = serializers.CharField(max_length=TEXT_CHARS_MAX)
