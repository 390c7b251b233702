"""Permits of staff to delete something although the service holds deletions."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.accounts.models import Organization
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id
from provisioning.models.cluster import Cluster
from provisioning.querysets import BreakGlassQuerySet

REASON_CHARS_MIN = 10
REASON_CHARS_MAX = 1_000
LASTS_S_MIN = 60
LASTS_S_DEFAULT = 3_600
LASTS_S_MAX = 24 * 3_600


class BreakGlass(models.Model):
    """A permit for one deletion of one cluster. Only `used_at` is ever changed."""

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "bgl"), editable=False
    )
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="break_glasses")
    reason = models.CharField(max_length=REASON_CHARS_MAX)
    # The id of the staff member.
    made_by = models.CharField(max_length=ID_CHARS_MAX)
    # The entry of the audit log in which the organization's people read of it.
    audit_id = models.CharField(max_length=ID_CHARS_MAX)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    # When it let a deletion pass.
    used_at = models.DateTimeField(null=True, blank=True)

    objects = BreakGlassQuerySet.as_manager()

    def __str__(self) -> str:
        return self.id
