"""Parameters and JSON shapes of usage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers

from console.base.common.api.kafka_names import KafkaNameField
from console.base.common.api.whole import WholeField
from console.base.common.clock import now
from metering.choices import UNITS, Agreement, UsageMeter
from metering.models import ReconciledDay, UsageRow
from metering.periods import DAY, HOUR, from_ms
from metering.services.tracing import TracedFile
from metering.services.usage import GRANULARITIES, GROUPS, MINUTE, MONTH

# By granularity: the length of a span without `from`, and its greatest length.
SPANS = {
    MINUTE: (3 * HOUR, 8 * DAY),
    "hour": (7 * DAY, 93 * DAY),
    "day": (31 * DAY, 800 * DAY),
    MONTH: (366 * DAY, 3660 * DAY),
}
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


class UsageQuerySerializer(serializers.Serializer[Any]):
    """The parameters of the query."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]+$", required=False, max_length=32)
    topic_id = serializers.RegexField(
        r"^[0-9a-f]{32}$",
        required=False,
        allow_blank=True,
        help_text="32 hexadecimal digits; empty for usage that belongs to no topic.",
    )
    principal = KafkaNameField(
        required=False,
        allow_blank=True,
        max_length=1024,
        help_text=(
            "`User:<credential's id>` or `User:<name>`; of who asks by REST `ApiKey:<key's id>` or "
            "`Member:<user's id>`; empty for usage that belongs to none, such as storage."
        ),
    )
    meter = serializers.ChoiceField(choices=UsageMeter.choices, required=False)
    billed = serializers.BooleanField(
        required=False, help_text="Only what invoices and costs count, or only what they do not."
    )
    granularity = serializers.ChoiceField(
        choices=GRANULARITIES,
        default="day",
        help_text=(
            "The length of a window. Minutes are kept for eight days. A day has the 1,000 "
            "largest pairs of a topic and a principal, of each cluster and meter, and sums "
            "the rest by topic under `Others:*`; hours have all."
        ),
    )
    group_by = serializers.ChoiceField(
        choices=list(GROUPS),
        default="none",
        help_text="`none` gives the rows themselves; all else sums of them, without ids.",
    )
    to = serializers.DateTimeField(
        required=False, help_text="Windows that begin before this time. Without it: now."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """`from` is a word of the language."""
        start = serializers.DateTimeField(
            required=False, help_text="Windows that begin at or after this time, in RFC 3339."
        )
        return {**super().get_fields(), "from": start}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Completes the span of time; refuses one that is empty, out of range or too long."""
        granularity = attrs["granularity"]
        usual, most = SPANS[granularity]
        end = attrs.pop("to", None) or now()
        start = attrs.pop("from", None)
        for name, moment in (("from", start), ("to", end)):
            if moment is not None and not EARLIEST <= moment <= LATEST:
                message = f"A time from {EARLIEST:%Y} to {LATEST:%Y} is expected."
                raise serializers.ValidationError({name: message})
        if start is None:
            start = _floor_time(end - usual, granularity)
        if start >= end:
            raise serializers.ValidationError({"from": "It is not before `to`."})
        if end - start > most + DAY:
            message = f"At most {most.days} days at a time by {granularity}."
            raise serializers.ValidationError({"from": message})
        return {**attrs, "start": start.astimezone(UTC), "end": end.astimezone(UTC)}


def _floor_time(moment: datetime, granularity: str) -> datetime:
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if granularity == MONTH:
        return day.replace(day=1)
    if granularity == "day":
        return day
    step = HOUR if granularity == "hour" else timedelta(minutes=1)
    return day + (moment - day) // step * step


class UsageItemSerializer(serializers.Serializer[Any]):
    """How much of one meter was used in one window."""

    id = serializers.CharField(
        allow_null=True,
        help_text="The row that invoices name, of an hour that of its day; null for a sum or a "
        "fresh item.",
    )
    meter = serializers.ChoiceField(choices=UsageMeter.choices)
    unit = serializers.CharField(help_text=f"One of {', '.join(sorted(set(UNITS.values())))}.")
    quantity = WholeField()
    window_start = serializers.DateTimeField()
    window_end = serializers.DateTimeField(help_text="The first moment after the window.")
    provisional = serializers.BooleanField(
        help_text="Some of it is not rolled up yet, and may still grow."
    )
    billed = serializers.BooleanField(help_text="Whether invoices count it.")
    cluster_id = serializers.CharField(allow_null=True, help_text="Null for a sum over clusters.")
    topic_id = serializers.CharField(
        allow_null=True, help_text="Null for a sum over topics, and for usage that belongs to none."
    )
    topic = serializers.CharField(allow_null=True, help_text="The topic's name.")
    principal = serializers.CharField(
        allow_null=True,
        help_text="Null for a sum over principals, and for usage that belongs to none.",
    )
    principal_name = serializers.CharField(
        allow_null=True,
        help_text=(
            "The name of the credential or the API key, or the member's address; null where it is "
            "not known, or the caller sees the clusters of some projects only."
        ),
    )


class StoredQuerySerializer(serializers.Serializer[Any]):
    """The parameters of the query."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]+$", required=False, max_length=32)
    topic_id = serializers.RegexField(
        r"^[0-9a-f]{32}$", required=False, help_text="32 hexadecimal digits."
    )


class StoredClusterSerializer(serializers.Serializer[Any]):
    """How many bytes the topics of a cluster hold."""

    cluster_id = serializers.CharField()
    bytes = WholeField()
    at = serializers.DateTimeField(help_text="The newest minute in which they were metered.")


class StoredSerializer(serializers.Serializer[Any]):
    """How many bytes topics hold now: what retention keeps, without copies and internal topics."""

    bytes = WholeField(help_text="The sum over the clusters.")
    at = serializers.DateTimeField(
        allow_null=True, help_text="The oldest `at` of the clusters; null where there is none."
    )
    clusters = StoredClusterSerializer(many=True)


class RunSerializer(serializers.Serializer[Any]):
    """The roll-up that a row is of."""

    id = serializers.CharField()
    day = serializers.DateField()
    published_at = serializers.DateTimeField()
    content_sha256 = serializers.CharField(help_text="The hash of all rows of the run.")
    current = serializers.SerializerMethodField()

    def get_current(self, run: Any) -> bool:
        """Whether the day's rows are those of this run; a corrected day has a newer run."""
        return hasattr(run, "pointer")


class LaneFileSerializer(serializers.Serializer[Any]):
    """A lane file, and its blocks."""

    file = serializers.IntegerField(help_text="Its number in the lane.")
    first_sequence = serializers.IntegerField()
    last_sequence = serializers.IntegerField()


class LaneRangeSerializer(serializers.Serializer[Any]):
    """Blocks of a lane."""

    incarnation = serializers.IntegerField(help_text="Counts the starts of brokers of the cluster.")
    first_sequence = serializers.IntegerField()
    last_sequence = serializers.IntegerField()
    files = LaneFileSerializer(
        many=True,
        help_text="Lane files of which there are sums over all blocks, by minute. Other blocks "
        "have rows of their own.",
    )
    since = serializers.SerializerMethodField()
    until = serializers.SerializerMethodField()

    def get_since(self, lane: Any) -> datetime:
        """The lane's usage after this time is in the file."""
        return from_ms(lane.since_ms)

    def get_until(self, lane: Any) -> datetime:
        """The lane's usage up to this time is in the file."""
        return from_ms(lane.until_ms)


class TracedFileSerializer(serializers.Serializer[Any]):
    """A usage file that the row was summed up from, and what it holds of the cluster."""

    key = serializers.CharField(source="file.key")
    sha256 = serializers.CharField(source="file.sha256")
    size_bytes = serializers.IntegerField(source="file.size_bytes")
    rows = serializers.IntegerField(source="file.rows")
    lanes = LaneRangeSerializer(many=True)
    since = serializers.SerializerMethodField()
    until = serializers.SerializerMethodField()

    def get_since(self, traced: TracedFile) -> datetime | None:
        """Start of its time of storage, partitions and brokers; null for usage of lanes."""
        return None if traced.window_ms is None else from_ms(traced.window_ms[0])

    def get_until(self, traced: TracedFile) -> datetime | None:
        """End of that time; null for usage of lanes."""
        return None if traced.window_ms is None else from_ms(traced.window_ms[1])


class UsageRowSerializer(UsageItemSerializer):
    """A rolled-up row, and what it was made from."""

    granularity = serializers.CharField(help_text="hour or day.")
    run = RunSerializer()
    files = TracedFileSerializer(many=True)


class ReconciledDayQuery(serializers.Serializer[Any]):
    """The parameters of the query."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]+$", required=False, max_length=32)
    to = serializers.DateField(required=False, help_text="YYYY-MM-DD: days before this one.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """`from` is a word of the language."""
        start = serializers.DateField(
            required=False, help_text="YYYY-MM-DD: this day and later ones."
        )
        return {**super().get_fields(), "from": start}


class ReconciledDaySerializer(serializers.ModelSerializer[ReconciledDay]):
    """One cluster's ingress of one day (UTC), as metered and as the log holds it."""

    agreement = serializers.ChoiceField(
        choices=Agreement.choices,
        help_text="`partly_known`: what could be compared is equal; `reason` says what could not.",
    )
    metered_bytes = WholeField(help_text="Bytes by usage.")
    logged_bytes = WholeField(help_text="Bytes by the segments that hold the records.")
    unknown_bytes = WholeField(
        help_text="Further metered bytes, of partitions whose log can no longer be counted."
    )
    differing_partitions = serializers.IntegerField(source="differing")

    class Meta:
        model = ReconciledDay
        fields = (
            *("id", "cluster_id", "day", "agreement", "metered_bytes", "logged_bytes"),
            *("unknown_bytes", "differing_partitions", "reason", "compared_at"),
        )


def shown_row(
    row: UsageRow, topic: str | None, principal_name: str | None, files: list[TracedFile]
) -> dict[str, Any]:
    """A row as `UsageRowSerializer` takes it: places that do not apply are None."""
    names = ("id", "meter", "window_start", "window_end", "billed", "granularity", "run")
    places = ("cluster_id", "topic_id", "principal")
    plain = {name: getattr(row, name) for name in names}
    plain |= {name: getattr(row, name) or None for name in places}
    return plain | {
        "unit": UNITS[row.meter],
        "quantity": int(row.quantity),
        "provisional": False,
        "topic": topic,
        "principal_name": principal_name,
        "files": files,
    }
