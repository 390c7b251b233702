"""Queries of provisioning's tables.

Every use begins with one organization, but for the sweeps' `to_recheck`, `due` and `over`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import F, Q

from console.base.common.actor import Actor, Permission
from provisioning.choices import UNFINISHED, Intent, SampleData

if TYPE_CHECKING:
    from provisioning.models import (  # noqa: F401
        BreakGlass,
        Cluster,
        Credential,
        Operation,
        RecordReading,
    )


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Queries of clusters."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def not_purged(self) -> Self:
        """Clusters that people see, also deleted ones while they can be restored."""
        return self.exclude(intent=Intent.PURGED)

    def readable(self, actor: Actor) -> Self:
        """Clusters that an actor may see: those of its projects."""
        own = self.for_organization(actor.organization_id)
        projects = actor.projects_with(Permission.READ)
        return own if projects is None else own.filter(project_id__in=projects)

    def active(self) -> Self:
        """Clusters that are not deleted."""
        return self.filter(intent=Intent.ACTIVE)

    def deleted(self) -> Self:
        """Deleted clusters that are not purged."""
        return self.filter(intent__in=(Intent.DELETED, Intent.PURGING))

    def to_recheck(self, *, moment: datetime, deleted_before: datetime) -> Self:
        """Clusters of all organizations that a sweep must look at.

        They have an unfinished operation, a generation that their cell does not have, sample data
        to be written, a deletion not after `deleted_before` that is to be purged, a purge that was
        begun, a credential whose removal is not confirmed, or a schedule that is due at `moment`.
        """
        unfinished = Q(operations__state__in=UNFINISHED)
        behind = Q(reconciled_generation__lt=F("generation"))
        samples = Q(sample_data=SampleData.WANTED)
        due = Q(intent=Intent.DELETED, deleted_at__lte=deleted_before) | Q(intent=Intent.PURGING)
        leftover = Q(credentials__removed_at__isnull=False)
        scheduled = Q(schedule_due_at__lte=moment)
        open_work = unfinished | behind | samples | due | leftover | scheduled
        return self.not_purged().filter(open_work).distinct()


class OperationQuerySet(models.QuerySet["Operation"]):
    """Queries of operations."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def unfinished(self) -> Self:
        """Operations whose state is not final."""
        return self.filter(state__in=UNFINISHED)


class CredentialQuerySet(models.QuerySet["Credential"]):
    """Queries of credentials."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def current(self) -> Self:
        """Credentials that authenticate."""
        return self.filter(removed_at=None)

    def named(self) -> Self:
        """Credentials whose names are taken: all current ones but those that were rotated."""
        return self.current().filter(replaced_at=None)

    def due(self, *, moment: datetime) -> Self:
        """Credentials of all organizations that have expired at a moment."""
        return self.current().filter(expires_at__lte=moment)


class BreakGlassQuerySet(models.QuerySet["BreakGlass"]):
    """Queries of permits to delete although deletions are held."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def usable(self, *, cluster_id: str, moment: datetime) -> Self:
        """Permits that let a deletion of a cluster pass at a moment."""
        return self.filter(cluster_id=cluster_id, used_at=None, expires_at__gt=moment)


class RecordReadingQuerySet(models.QuerySet["RecordReading"]):
    """Queries of readings of records."""

    def for_organization(self, organization_id: str) -> Self:
        """The rows of one organization."""
        return self.filter(organization_id=organization_id)

    def over(self, *, last_before: datetime, began_before: datetime) -> Self:
        """Readings of all organizations that have paused since a moment, or began before one."""
        return self.filter(Q(last_at__lt=last_before) | Q(began_at__lt=began_before))
