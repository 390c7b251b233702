"""JSON shapes of clusters, operations and regions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
from console.base.common.conf import config
from console.base.common.ids import ID_CHARS_MAX
from provisioning.choices import BrokerPhase, OperationState, OperationType, Phase
from provisioning.clusters.schedules import DAYS, MIDNIGHT, ScheduledState, minutes_of, zone_of
from provisioning.clusters.services.observation import (
    Observation,
    ReadStatus,
    observation_read,
    read_status,
)
from provisioning.clusters.services.scheduling import scheduled_state_of
from provisioning.models import Cluster
from provisioning.models.cluster import (
    IDLE_TIMEOUT_S_MAX,
    IDLE_TIMEOUT_S_MIN,
    NAME_CHARS_MAX,
)

NAME = r"^[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?$"
LABELS_MAX = 32
LABEL_CHARS_MAX = 63
SCHEDULES_MAX = 20


@dataclass(frozen=True)
class ShownCluster:
    """A cluster with its status, as the API shows it."""

    cluster: Cluster
    status: Observation

    @property
    def generation(self) -> int:
        """The generation of the cluster, which is its ETag."""
        return self.cluster.generation

    @property
    def endpoints(self) -> list[dict[str, str]]:
        """Where clients connect; empty for a cluster that its organization's status suspends."""
        cluster, settings = self.cluster, config()
        if cluster.suspended:
            return []
        gateway = settings.gateway
        tls = f"{cluster.host}.{gateway.domain}:{gateway.tls_port}"
        listeners = [{"listener": "SASL_SSL", "bootstrap_servers": tls}]
        if settings.local and cluster.ports:
            # From it clients learn the addresses of all slots.
            plain = f"127.0.0.1:{cluster.ports[0]}"
            listeners.insert(0, {"listener": "SASL_PLAINTEXT", "bootstrap_servers": plain})
        return listeners

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the first endpoint, or an empty text where there is none."""
        return self.endpoints[0]["bootstrap_servers"] if self.endpoints else ""

    @property
    def spec(self) -> dict[str, object]:
        """The specification of the cluster."""
        cluster = self.cluster
        return {
            "idle_timeout_s": cluster.idle_timeout_s,
            "scale": {"min": cluster.scale_min, "max": cluster.scale},
            "schedules": cluster.schedules,
        }

    @property
    def schedule(self) -> ScheduledState | None:
        """What the cluster's schedules want at this moment; None where it has none."""
        return scheduled_state_of(self.cluster) if self.cluster.schedules else None


def show_cluster(cluster: Cluster, read: ReadStatus | None = None) -> ShownCluster:
    """Returns a cluster as the API shows it, with its status: `read` earlier, or read now."""
    return ShownCluster(cluster, observation_read(cluster, read or read_status(cluster.pk)))


class ConditionSerializer(serializers.Serializer[Any]):
    """One fact about a resource."""

    type = serializers.CharField()
    status = serializers.CharField(help_text="true, false or unknown.")
    reason = serializers.CharField()
    message = serializers.CharField()


class ScaleSerializer(serializers.Serializer[Any]):
    """How many brokers it has."""

    min = serializers.IntegerField(
        help_text="0: it sleeps while nobody is connected. 1: it never sleeps."
    )
    max = serializers.IntegerField(help_text="Brokers when awake; asleep it has none.")


class ScheduleSerializer(serializers.Serializer[Any]):
    """A time of the week in which a cluster does not sleep."""

    days = serializers.ListField(
        child=serializers.ChoiceField(choices=DAYS),
        min_length=1,
        help_text="Those on which it begins.",
    )
    start = serializers.CharField(help_text="`HH:MM`, as clocks in its time zone show it.")
    end = serializers.CharField(
        help_text="`HH:MM` up to `24:00`; of the next day where it is not behind `start`."
    )
    time_zone = serializers.CharField(
        help_text="Its name in the IANA's data base, such as `Europe/Zurich`."
    )


class ScheduleInputSerializer(ScheduleSerializer):
    """A time of the week in which a cluster shall not sleep."""

    time_zone = serializers.CharField(
        default="UTC", help_text="Its name in the IANA's data base, such as `Europe/Zurich`."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuses a schedule that is not whole, also in a PATCH."""
        missing = [name for name in ("days", "start", "end") if name not in attrs]
        if missing:
            problem = dict.fromkeys(missing, "This field is required.")
            raise serializers.ValidationError(problem, code="required")
        return {"time_zone": "UTC", **attrs}

    def validate_days(self, days: list[str]) -> list[str]:
        """The days without repetitions, from Monday on."""
        return [day for day in DAYS if day in days]

    def validate_start(self, text: str) -> str:
        """Refuses what is not a time of day; 24:00 is not one, because the next day begins."""
        if text == MIDNIGHT:
            message = "A day begins at 00:00."
            raise serializers.ValidationError(message)
        return _checked(minutes_of, text)

    def validate_end(self, text: str) -> str:
        """Refuses what is neither a time of day nor 24:00."""
        return _checked(minutes_of, text)

    def validate_time_zone(self, name: str) -> str:
        """Refuses a name that no time zone has."""
        return _checked(zone_of, name)


def _checked(check: Callable[[str], object], text: str) -> str:
    try:
        check(text)
    except ValueError as error:
        raise serializers.ValidationError(str(error)) from error
    return text


class SpecSerializer(serializers.Serializer[Any]):
    """What is wanted of a cluster."""

    idle_timeout_s = serializers.IntegerField(
        help_text="It goes to sleep after so many seconds without a client."
    )
    scale = ScaleSerializer()
    schedules = ScheduleSerializer(many=True)


class ScheduledStateSerializer(serializers.Serializer[Any]):
    """What schedules want."""

    awake = serializers.BooleanField(help_text="It does not sleep, whoever is connected.")
    until = serializers.DateTimeField(allow_null=True, help_text="Null: that does not change.")


class BrokerSerializer(serializers.Serializer[Any]):
    """A broker of a cluster."""

    slot = serializers.IntegerField(help_text="Its number in the cluster, from 0: its node id.")
    phase = serializers.ChoiceField(choices=BrokerPhase.choices)


class StatusSerializer(serializers.Serializer[Any]):
    """What is observed of a cluster at this moment."""

    phase = serializers.ChoiceField(choices=Phase.choices)
    since = serializers.DateTimeField(allow_null=True)
    observed_generation = serializers.IntegerField()
    conditions = ConditionSerializer(many=True)
    connections = serializers.IntegerField(allow_null=True, help_text="Of clients.")
    restarts = serializers.IntegerField(
        allow_null=True, help_text="Brokers that were started anew since it woke up."
    )
    brokers = BrokerSerializer(
        many=True, help_text="Those that it has when awake; none while its phase is `unknown`."
    )


class EndpointSerializer(serializers.Serializer[Any]):
    """One way for clients to connect."""

    listener = serializers.ChoiceField(choices=["SASL_PLAINTEXT", "SASL_SSL"])
    bootstrap_servers = serializers.CharField()


class ClusterSerializer(serializers.Serializer[Any]):
    """A cluster."""

    id = serializers.CharField(source="cluster.id")
    name = serializers.CharField(source="cluster.name")
    project_id = serializers.CharField(source="cluster.project_id")
    region = serializers.CharField(source="cluster.cell.region")
    labels = serializers.DictField(source="cluster.labels", child=serializers.CharField())
    generation = serializers.IntegerField()
    created_at = serializers.DateTimeField(source="cluster.created_at")
    deletion_protection = serializers.BooleanField(source="cluster.deletion_protection")
    deleted_at = serializers.DateTimeField(source="cluster.deleted_at", allow_null=True)
    spec = SpecSerializer()
    bootstrap_servers = serializers.CharField(help_text="`host:port,…` for Kafka clients.")
    endpoints = EndpointSerializer(many=True)
    schedule = ScheduledStateSerializer(
        allow_null=True, help_text="What `spec.schedules` want at this moment; null: it has none."
    )
    status = StatusSerializer()


class ScaleInputSerializer(serializers.Serializer[Any]):
    """How many brokers it shall have. What is left out stays."""

    min = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=1,
        help_text="0: it sleeps while nobody is connected. 1: it never sleeps, and has all of its "
        "brokers all the time.",
    )
    max = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=BROKERS_PER_CLUSTER_MAX,
        help_text="Brokers when awake, up to the limit `brokers`.",
    )


class SpecInputSerializer(serializers.Serializer[Any]):
    """The part of a cluster's spec that can be chosen."""

    scale = ScaleInputSerializer(required=False)
    schedules: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=ScheduleInputSerializer(),
        required=False,
        max_length=SCHEDULES_MAX,
        help_text="Replaces all of them. Outside of them it sleeps while nobody is connected.",
    )
    idle_timeout_s = serializers.IntegerField(
        required=False, min_value=IDLE_TIMEOUT_S_MIN, max_value=IDLE_TIMEOUT_S_MAX
    )


class ClusterUpdateSerializer(serializers.Serializer[Any]):
    """What changes. What is left out stays."""

    name = serializers.RegexField(NAME, max_length=NAME_CHARS_MAX, required=False)
    labels = serializers.DictField(
        child=serializers.CharField(max_length=LABEL_CHARS_MAX, allow_blank=True),
        required=False,
        help_text="Replaces all labels.",
    )
    idle_timeout_s = serializers.IntegerField(
        required=False,
        min_value=IDLE_TIMEOUT_S_MIN,
        max_value=IDLE_TIMEOUT_S_MAX,
        help_text="The same as spec.idle_timeout_s.",
    )
    project_id = serializers.CharField(
        required=False,
        max_length=ID_CHARS_MAX,
        help_text="One where the caller may create clusters.",
    )
    spec = SpecInputSerializer(required=False)
    deletion_protection = serializers.BooleanField(required=False)

    def validate_labels(self, labels: dict[str, str]) -> dict[str, str]:
        """Refuses too many labels, and names that are too long or not printable."""
        if len(labels) > LABELS_MAX:
            message = f"At most {LABELS_MAX} labels."
            raise serializers.ValidationError(message)
        # Characters that PostgreSQL refuses in a text (NUL, half a surrogate) are not printable.
        if not all(0 < len(name) <= LABEL_CHARS_MAX and name.isprintable() for name in labels):
            message = f"A label's name has 1 to {LABEL_CHARS_MAX} printable characters."
            raise serializers.ValidationError(message)
        return labels

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Flattens `spec` and `spec.scale` into the names of the model's fields."""
        spec = attrs.pop("spec", {})
        scale = {f"scale_{bound}": value for bound, value in spec.pop("scale", {}).items()}
        return {**spec, **scale, **attrs}


class ClusterCreateSerializer(ClusterUpdateSerializer):
    """What a new cluster shall be."""

    name = serializers.RegexField(NAME, max_length=NAME_CHARS_MAX)
    region = serializers.CharField(required=False, help_text="One of `/regions`.")
    project_id = serializers.CharField(
        required=False, max_length=ID_CHARS_MAX, help_text="Without it, the default project."
    )


class UndeleteSerializer(serializers.Serializer[Any]):
    """How it comes back."""

    name = serializers.RegexField(
        NAME,
        max_length=NAME_CHARS_MAX,
        required=False,
        help_text="Another name, where its own was taken meanwhile.",
    )


class EmptySerializer(serializers.Serializer[Any]):
    """Nothing."""


class ClusterListQuerySerializer(serializers.Serializer[Any]):
    """Which clusters."""

    project_id = serializers.CharField(required=False, help_text="Of this project.")


class DeleteQuerySerializer(serializers.Serializer[Any]):
    """What confirms a deletion."""

    name = serializers.CharField(required=False, help_text="The cluster's name, to confirm.")


class OperationErrorSerializer(serializers.Serializer[Any]):
    """Why an operation failed."""

    code = serializers.CharField()
    detail = serializers.CharField()


class OperationSerializer(serializers.Serializer[Any]):
    """Work that takes longer than a request. Once its state is final nothing of it changes."""

    id = serializers.CharField()
    type = serializers.ChoiceField(choices=OperationType.choices)
    resource_id = serializers.CharField(help_text="The cluster's id.")
    state = serializers.ChoiceField(choices=OperationState.choices)
    progress = serializers.IntegerField(help_text="In percent.")
    error = OperationErrorSerializer(allow_null=True)
    request_id = serializers.CharField(
        help_text="The request that began it, as its answer's `X-Request-Id` had it; `-` of none."
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class OperationListQuerySerializer(serializers.Serializer[Any]):
    """Which operations."""

    resource_id = serializers.CharField(required=False, help_text="Of this cluster.")


class OperationQuerySerializer(serializers.Serializer[Any]):
    """How long to wait."""

    wait = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=60,
        help_text="Seconds to wait for the operation to finish.",
    )


class RegionSerializer(serializers.Serializer[Any]):
    """A region that clusters can be created in."""

    id = serializers.CharField()
    name = serializers.CharField()
