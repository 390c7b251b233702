"""The audit log. Rows are only added: the serving role may not change or delete one."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

TARGET_CHARS_MAX = 512
ACTION_CHARS_MAX = 64
# A Kafka client is named by its principal, whose length Kafka does not bound.
ACTOR_CHARS_MAX = 255


class AuditEntry(models.Model):
    """One change, by one actor, to one target."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "aud"), editable=False
    )
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    created_at = models.DateTimeField(default=now)
    # `<noun>.<verb>`, such as `cluster.create`.
    action = models.CharField(max_length=ACTION_CHARS_MAX)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=ACTOR_CHARS_MAX)
    target_type = models.CharField(max_length=32)
    # An id, or the name of a target without one (a topic: `<cluster id>/<topic>`). A longer name is
    # cut off: that of a consumer group may have 32,767 characters.
    target_id = models.CharField(max_length=TARGET_CHARS_MAX)
    request_id = models.CharField(max_length=64)
    address = models.CharField(max_length=64, blank=True)
    # What changed, never a secret.
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = (
            models.Index(fields=["organization_id", "-created_at", "-id"], name="audit_newest"),
            # One index for each filter of the list, in the order of the list.
            models.Index(
                fields=["organization_id", "actor_id", "-created_at", "-id"], name="audit_by_actor"
            ),
            models.Index(
                fields=["organization_id", "action", "-created_at", "-id"], name="audit_by_action"
            ),
            models.Index(
                fields=["organization_id", "target_id", "-created_at", "-id"],
                name="audit_by_target",
            ),
            models.Index(
                fields=["organization_id", "target_type", "-created_at", "-id"],
                name="audit_by_target_type",
            ),
        )

    def __str__(self) -> str:
        return f"{self.action} {self.target_id}"
