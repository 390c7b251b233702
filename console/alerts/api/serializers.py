"""JSON shapes of alerts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.alerts.choices import AlertKind, AlertState
from console.alerts.models import Alert
from console.alerts.models.alert import GROUP_CHARS_MAX, NAME_CHARS_MAX

THRESHOLD_MAX = 2**62
FOR_S_DEFAULT = 300
FOR_S_MAX = 24 * 3600
EMAILS_MAX = 20
KIND_HELP = "The figure: of the keeper's last look at groups, or of what is metered."
THRESHOLD_HELP = "It fires above: records, seconds, bytes or connections, as its kind says."
FOR_HELP = "Seconds that the figure stays beyond it before it fires, and below before it is over."
GROUP_HELP = "Of kinds of groups; empty: whichever group is worst."
EMAILS_HELP = "Members who get mails; empty: those who manage the organisation."


class AlertQuerySerializer(serializers.Serializer[Any]):
    """Which alerts are asked for."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]{20}$", required=False)


class AlertSerializer(serializers.ModelSerializer[Alert]):
    """An alert, and how it stands."""

    cluster_id = serializers.CharField()
    kind = serializers.ChoiceField(choices=AlertKind.choices, help_text=KIND_HELP)
    emails = serializers.ListField(child=serializers.EmailField(), help_text=EMAILS_HELP)
    state = serializers.ChoiceField(choices=AlertState.choices)
    changed_at = serializers.DateTimeField(help_text="Since when it is in this state.")
    fired_at = serializers.DateTimeField(
        allow_null=True, help_text="When it last began to fire; null: never yet."
    )
    value = serializers.IntegerField(
        allow_null=True, help_text="The figure at the last look; null: not known."
    )
    subject = serializers.CharField(help_text="The group whose figure it is, of kinds of groups.")
    evaluated_at = serializers.DateTimeField(
        allow_null=True, help_text="The last look; they are a minute apart."
    )

    class Meta:
        model = Alert
        fields = (
            *("id", "cluster_id", "name", "kind", "group", "threshold", "for_s", "emails"),
            *("state", "changed_at", "fired_at", "value", "subject", "evaluated_at"),
            *("generation", "created_at"),
        )
        read_only_fields = fields


class AlertUpdateSerializer(serializers.Serializer[Any]):
    """What changes. What is left out stays."""

    name = serializers.CharField(max_length=NAME_CHARS_MAX, required=False)
    group = serializers.CharField(
        max_length=GROUP_CHARS_MAX, allow_blank=True, required=False, help_text=GROUP_HELP
    )
    threshold = serializers.IntegerField(
        min_value=0, max_value=THRESHOLD_MAX, required=False, help_text=THRESHOLD_HELP
    )
    for_s = serializers.IntegerField(
        min_value=0, max_value=FOR_S_MAX, required=False, help_text=FOR_HELP
    )
    emails = serializers.ListField(
        child=serializers.EmailField(), max_length=EMAILS_MAX, required=False, help_text=EMAILS_HELP
    )

    def validate_name(self, name: str) -> str:
        """One line of text: it is in the subject of mails."""
        if not name.isprintable():
            message = "A name has printable characters only."
            raise serializers.ValidationError(message)
        return name


class AlertCreateSerializer(AlertUpdateSerializer):
    """What a new alert shall be."""

    cluster_id = serializers.RegexField(r"^cl_[a-z2-7]{20}$")
    name = serializers.CharField(max_length=NAME_CHARS_MAX)
    kind = serializers.ChoiceField(choices=AlertKind.choices, help_text=KIND_HELP)
    threshold = serializers.IntegerField(
        min_value=0, max_value=THRESHOLD_MAX, help_text=THRESHOLD_HELP
    )
    for_s = serializers.IntegerField(
        min_value=0, max_value=FOR_S_MAX, default=FOR_S_DEFAULT, help_text=FOR_HELP
    )
