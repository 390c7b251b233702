"""Answers to POSTs with an `Idempotency-Key`, so that a repeat changes nothing."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX


class IdempotencyRecord(models.Model):
    """The answer to one key of one actor.

    Neither the key nor the request is stored, only keyed digests of them, and the answer is sealed
    with the key (`console.base.common.sealing`): an answer may hold a secret that is shown once.
    """

    # Digest of organisation, actor, path and key.
    id = models.CharField(primary_key=True, max_length=64, editable=False)
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    request_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    sealed_answer = models.BinaryField()
    created_at = models.DateTimeField(default=now, db_index=True)

    def __str__(self) -> str:
        return self.id
