"""JSON shapes of alerts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.alerts.choices import AlertKind, AlertState
from console.alerts.models import Alert
from console.alerts.models.alert import GROUP_CHARS_MAX, NAME_CHARS_MAX
from console.base.common.api.lines import one_line
from console.base.common.api.whole import Int64Field

THRESHOLD_MAX = 2**62
FOR_S_DEFAULT = 300
FOR_S_MAX = 24 * 3600
EMAILS_MAX = 20
KIND_HELP = "The figure, which comes from the keeper's samples or from metered usage."
THRESHOLD_HELP = "The alert fires above it. Its unit follows from `kind`."
FOR_HELP = "Seconds that the figure is above before the alert fires, and below before it is over."
GROUP_HELP = "The consumer group, for kinds of a lag; empty: the one furthest behind."
STATE_HELP = "`pending`: the figure is above the threshold, and not yet for `for_s` seconds."
SINCE_HELP = (
    "Pending or firing: when the figure went above the threshold. Otherwise since when it is OK."
)
BACK_HELP = "Since when the figure of a firing alert is back below the threshold; null: it is not."
SUBJECT_HELP = (
    "The group whose figure it is, for kinds of a lag; for kinds of storage the topic with most "
    "of it. Empty where there is none."
)
EMAILS_HELP = "Addresses of members who get mails; empty: those who manage the organization."


class AlertQuerySerializer(serializers.Serializer[Any]):
    """The query parameters of a list of alerts."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]{20}$", required=False)


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert with its state."""

    cluster_id = serializers.CharField()
    kind = serializers.ChoiceField(choices=AlertKind.choices, help_text=KIND_HELP)
    emails = serializers.ListField(child=serializers.EmailField(), help_text=EMAILS_HELP)
    threshold = Int64Field(help_text=THRESHOLD_HELP)
    state = serializers.ChoiceField(choices=AlertState.choices, help_text=STATE_HELP)
    since = serializers.DateTimeField(help_text=SINCE_HELP)
    changed_at = serializers.DateTimeField(help_text="Since when it is in this state.")
    back_since = serializers.DateTimeField(allow_null=True, help_text=BACK_HELP)
    fired_at = serializers.DateTimeField(
        allow_null=True, help_text="When it last began to fire; null: never yet."
    )
    value = Int64Field(
        allow_null=True, help_text="The figure when it was last read; null: not known."
    )
    subject = serializers.CharField(help_text=SUBJECT_HELP)
    fired_subject = serializers.CharField(
        help_text="The group or topic of the figure with which it last began to fire; may be empty."
    )
    evaluated_at = serializers.DateTimeField(
        allow_null=True, help_text="When the figure was last read, once a minute; null: not yet."
    )

    class Meta:
        model = Alert
        fields = (
            *("id", "cluster_id", "name", "kind", "group", "threshold", "for_s", "emails"),
            *("state", "since", "changed_at", "back_since", "fired_at", "fired_subject"),
            *("value", "subject", "evaluated_at"),
            *("generation", "created_at"),
        )
        read_only_fields = fields


class AlertUpdateSerializer(serializers.Serializer[Any]):
    """Changes of an alert. Members that are left out stay as they are."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, required=False, validators=[one_line])
    group = serializers.CharField(
        max_length=GROUP_CHARS_MAX, allow_blank=True, required=False, help_text=GROUP_HELP
    )
    threshold = Int64Field(
        min_value=0, max_value=THRESHOLD_MAX, required=False, help_text=THRESHOLD_HELP
    )
    for_s = serializers.IntegerField(
        min_value=0, max_value=FOR_S_MAX, required=False, help_text=FOR_HELP
    )
    emails = serializers.ListField(
        child=serializers.EmailField(), max_length=EMAILS_MAX, required=False, help_text=EMAILS_HELP
    )


class AlertCreateSerializer(AlertUpdateSerializer):
    """A new alert."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]{20}$")
    name = serializers.CharField(max_length=NAME_CHARS_MAX, validators=[one_line])
    kind = serializers.ChoiceField(choices=AlertKind.choices, help_text=KIND_HELP)
    threshold = Int64Field(min_value=0, max_value=THRESHOLD_MAX, help_text=THRESHOLD_HELP)
    for_s = serializers.IntegerField(
        min_value=0, max_value=FOR_S_MAX, default=FOR_S_DEFAULT, help_text=FOR_HELP
    )
