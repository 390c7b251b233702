"""Who reads records of which topic at this moment, until the audit log says it."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from console.base.common.models.audit import ACTOR_CHARS_MAX
from provisioning.querysets import RecordReadingQuerySet

# Kafka's own bound of a topic's name.
TOPIC_CHARS_MAX = 249


class RecordReading(models.Model):
    """What one actor has read of one topic since `began_at`. It becomes an entry of the audit log.

    Each page and each look of a live tail adds to the row. It is deleted in the transaction that
    adds the entry.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "rdg"), editable=False
    )
    # Not foreign keys: to refer to a row locks it, and a page must not wait for a reconcile.
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    topic = models.CharField(max_length=TOPIC_CHARS_MAX)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=ACTOR_CHARS_MAX)
    # Of the first request.
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64)
    began_at = models.DateTimeField(default=now)
    last_at = models.DateTimeField(default=now)
    pages = models.BigIntegerField(default=0)
    live_tails = models.BigIntegerField(default=0)
    # Records that were shown, and those that were read for it, also what a filter left out.
    records = models.BigIntegerField(default=0)
    records_read = models.BigIntegerField(default=0)
    # Each is `[partition, first offset, last offset]` of records that were shown.
    ranges = models.JSONField(default=list)
    # Whether ranges were joined over gaps, because there were too many.
    joined = models.BooleanField(default=False)

    objects = RecordReadingQuerySet.as_manager()

    class Meta:
        # No further index: each page would write it anew, and there are as many rows as readers.
        constraints = (
            models.UniqueConstraint(
                fields=["organization_id", "cluster_id", "topic", "actor_kind", "actor_id"],
                name="one_reading_an_actor",
            ),
        )

    def __str__(self) -> str:
        return self.id
