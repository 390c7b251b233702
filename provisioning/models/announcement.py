"""Announcements of changes in a cell that leave nothing behind to find them by."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX


class Announcement(models.Model):
    """An entry of the audit log that becomes one when its change is made.

    It is committed before the change and deleted in the transaction that adds the entry. An
    announcement whose lock nobody holds was left by a request that died.
    """

    # The id of the entry.
    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX, editable=False)
    # Not foreign keys, because the row is written while another transaction locks those rows.
    organization_id = models.CharField(max_length=ID_CHARS_MAX)
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    created_at = models.DateTimeField(default=now)
    # The other fields of the entry by their names.
    entry = models.JSONField()

    def __str__(self) -> str:
        return self.id
