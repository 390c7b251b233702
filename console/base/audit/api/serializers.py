"""Parameters and JSON shapes of the audit log."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from console.base.audit.export import CSV, JSONL
from console.base.audit.names import TargetName
from console.base.common.actor import ActorKind
from console.base.common.models import AuditEntry
from console.base.common.models.audit import ACTION_CHARS_MAX, ACTOR_CHARS_MAX, TARGET_CHARS_MAX

KINDS = [kind.value for kind in ActorKind]
# The kind of actor → what `source` shows for it.
SOURCES = {
    ActorKind.API_KEY.value: "api",
    ActorKind.SESSION.value: "console",
    ActorKind.KAFKA.value: "kafka",
    ActorKind.STAFF.value: "system",
    ActorKind.SYSTEM.value: "system",
}
DETAIL_HELP = (
    "What changed: a value that was changed is an object with `from` and `to`, the old and the new "
    "one. Of records that were read it has their counts and `offsets`. It never has a secret."
)


class AuditQuerySerializer(serializers.Serializer[Any]):
    """Filters of the audit log. They are exact, and all of them must match."""

    actor = serializers.CharField(
        required=False,
        max_length=ACTOR_CHARS_MAX,
        help_text="The id of a key or a user, or the principal of a Kafka client.",
    )
    action = serializers.CharField(
        required=False, max_length=ACTION_CHARS_MAX, help_text="Such as `cluster.create`."
    )
    target_type = serializers.CharField(required=False, max_length=32)
    target_id = serializers.CharField(
        required=False,
        max_length=TARGET_CHARS_MAX,
        help_text="An id, or `<cluster id>/<name>` for a target without one.",
    )
    to = serializers.DateTimeField(required=False, help_text="Entries before this time.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Adds the field `from`, which cannot be a class attribute: it is a keyword of Python."""
        start = serializers.DateTimeField(
            required=False, help_text="Entries at or after this time, in RFC 3339."
        )
        return {**super().get_fields(), "from": start}


class AuditExportQuerySerializer(AuditQuerySerializer):
    """Filters of the audit log, and the format of the file."""

    format = serializers.ChoiceField(
        choices=[JSONL, CSV], default=JSONL, help_text="`jsonl`: one JSON object a line."
    )


class AuditActorSerializer(serializers.Serializer[Any]):
    """The actor who made a change."""

    kind = serializers.ChoiceField(choices=KINDS)
    id = serializers.CharField()
    name = serializers.CharField(help_text="Its current name, or its id if it was deleted.")


class AuditTargetSerializer(serializers.Serializer[Any]):
    """The resource that was changed."""

    type = serializers.CharField()
    id = serializers.CharField()
    name = serializers.CharField(
        help_text="Its current name, or the one that the entry has if it was deleted, or its id."
    )
    cluster = serializers.CharField(
        help_text="The name of the cluster that it is in; empty for what is in none."
    )


class AuditEntrySerializer(serializers.Serializer[Any]):
    """One change. Entries are never changed or removed."""

    id = serializers.CharField()
    created_at = serializers.DateTimeField()
    action = serializers.CharField(help_text="`<noun>.<verb>`.")
    actor = AuditActorSerializer()
    target = AuditTargetSerializer()
    request_id = serializers.CharField(
        help_text="The request's id; for a Kafka client its connection's, `con_…`; `-` for others."
    )
    address = serializers.CharField(help_text="Where the request came from; may be empty.")
    detail = serializers.DictField(help_text=DETAIL_HELP)
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=["api", "console", "kafka", "system"], help_text="Where the change came from."
    )


def show_entry(entry: AuditEntry, actor_name: str, target: TargetName) -> dict[str, Any]:
    """Returns the JSON members of an entry, as `AuditEntrySerializer` describes them."""
    return {
        "id": entry.pk,
        "created_at": entry.created_at.isoformat().replace("+00:00", "Z"),
        "action": entry.action,
        "actor": {"kind": entry.actor_kind, "id": entry.actor_id, "name": actor_name},
        "target": {
            "type": entry.target_type,
            "id": entry.target_id,
            "name": target.name,
            "cluster": target.cluster,
        },
        "request_id": entry.request_id,
        "address": entry.address,
        "detail": entry.detail,
        "source": SOURCES.get(entry.actor_kind, "api"),
    }
