"""Answers to POSTs with an `Idempotency-Key`, so that a repeat changes nothing."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX


class IdempotencyRecord(models.Model):
    """The stored answer to a request with an idempotency key of one actor.

    Keyed digests of the key and the request are stored, not the texts, and the answer is encrypted
    with the key (`console.base.common.sealing`): it may hold a secret that is shown once.
    """

    # A keyed digest of organization, actor, path and key.
    id = models.CharField(primary_key=True, max_length=64, editable=False)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    sealed_answer = models.BinaryField()
    created_at = models.DateTimeField(default=now, db_index=True)

    def __str__(self) -> str:
        return self.id
