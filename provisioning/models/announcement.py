"""Changes that are about to be made in a cell, of which nothing would be left to tell."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX


class Announcement(models.Model):
    """An entry of the audit log that is written as soon as its change is made.

    It is committed before the change, and goes with the entry: one that is there and that nobody
    holds any more is of a request that died.
    """

    # The entry's.
    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    # No references: it is written beside the transaction that holds what they refer to.
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    created_at = models.DateTimeField(default=now)
    # The entry's fields by their names, but for those above.
    entry = models.JSONField()

    def __str__(self) -> str:
        return self.id
